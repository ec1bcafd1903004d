//! Which nodes are made again, counted.

use factum_engine::serve::RefusalStatus;

use crate::support::{Desk, doc, who};

fn facts(n: u32, delivery: &str) -> String {
    format!(
        "Supply note {n}\r\nProduct P-10-{n:02} delivery: {delivery}.\r\nProduct P-10-{n:02} status: open.\r\n\
         Product P-10-{n:02} quantity: {n}.\r\nProduct P-10-{n:02} site: Harwick.\r\n\
         The delivery on 1 May is no longer planned.\r\n\"Product P-10-{n:02} status: closed.\"\r\n"
    )
}

async fn controlled() -> Desk {
    let desk = Desk::new("controlled", None).await;
    for n in 0..12 {
        desk.publish(&format!("doc-{n:02}.txt"), &facts(n, "18 October"))
            .await;
    }
    desk
}

#[tokio::test]
async fn the_published_counts_come_out() {
    let desk = controlled().await;
    let owner = &desk.owner;
    let first = desk.build(owner, false).await;
    assert_eq!(
        (first.counts.nodes, first.counts.recomputed),
        (16, 16),
        "12 leaves, 3 reductions, 1 root"
    );
    assert_eq!(
        desk.summary(owner).await.claims.len(),
        48,
        "every fact reaches the root"
    );

    desk.publish("doc-00.txt", &facts(0, "25 October")).await;
    assert_eq!(desk.refusal(owner).await.status, RefusalStatus::Stale);
    assert_eq!(
        desk.build(owner, false).await.counts.recomputed,
        3,
        "leaf, reduction, root"
    );
    let summary = desk.summary(owner).await;
    assert!(
        summary
            .claims
            .iter()
            .any(|(text, _)| text == "P-10-00 delivery: 25 October")
    );

    desk.workspace
        .withdraw(owner, &desk.case, &doc("doc-04.txt"))
        .await
        .unwrap();
    assert_eq!(
        desk.build(owner, false).await.counts.recomputed,
        3,
        "an ineligible leaf counts as made"
    );
    assert_eq!(desk.summary(owner).await.claims.len(), 44);

    desk.workspace
        .revoke(owner, &desk.case, &[doc("doc-08.txt")], owner)
        .await
        .unwrap();
    assert_eq!(desk.build(owner, false).await.counts.recomputed, 3);
    assert_eq!(desk.summary(owner).await.claims.len(), 40);
    desk.check_against_full(owner).await;
}

#[tokio::test]
async fn a_withdrawal_taken_back_makes_the_old_summary_current_again() {
    let desk = controlled().await;
    let owner = &desk.owner;
    let before = desk.build(owner, false).await;
    desk.workspace
        .withdraw(owner, &desk.case, &doc("doc-04.txt"))
        .await
        .unwrap();
    desk.refusal(owner).await;
    desk.workspace
        .reinstate(owner, &desk.case, &doc("doc-04.txt"))
        .await
        .unwrap();
    assert_eq!(desk.summary(owner).await.root, before.root);
    assert_eq!(desk.build(owner, false).await.counts.recomputed, 0);
}

#[tokio::test]
async fn what_others_may_see_does_not_touch_a_summary() {
    let desk = controlled().await;
    let (owner, broker) = (&desk.owner, who("broker"));
    desk.build(owner, false).await;
    desk.workspace
        .grant(owner, &desk.case, &[doc("doc-01.txt")], &broker)
        .await
        .unwrap();
    desk.summary(owner).await;
    desk.build(&broker, false).await;
    assert_eq!(desk.summary(&broker).await.claims.len(), 4);
    // A document that the broker never saw changes nothing for it.
    desk.publish("doc-02.txt", &facts(2, "1 November")).await;
    desk.summary(&broker).await;
    // Nor do later versions of one that was revoked from it.
    desk.workspace
        .grant(owner, &desk.case, &[doc("doc-03.txt")], &broker)
        .await
        .unwrap();
    desk.build(&broker, false).await;
    desk.workspace
        .revoke(owner, &desk.case, &[doc("doc-01.txt")], &broker)
        .await
        .unwrap();
    let refusal = desk.refusal(&broker).await;
    assert!(
        refusal.reasons.iter().all(|reason| reason.doc_id.is_none()),
        "{refusal:?}"
    );
    desk.build(&broker, false).await;
    desk.publish("doc-01.txt", &facts(1, "2 November")).await;
    assert_eq!(desk.summary(&broker).await.claims.len(), 4);
}

#[tokio::test]
async fn the_access_revision_moves_in_the_transaction_of_the_grant_and_is_in_the_key() {
    let desk = controlled().await;
    let (owner, broker) = (&desk.owner, who("broker"));
    desk.workspace
        .grant(owner, &desk.case, &[], &broker)
        .await
        .unwrap();
    let first = desk.build(&broker, false).await;
    desk.workspace
        .revoke(owner, &desk.case, &[doc("doc-05.txt")], &broker)
        .await
        .unwrap();
    desk.refusal(&broker).await;
    desk.workspace
        .grant(owner, &desk.case, &[doc("doc-05.txt")], &broker)
        .await
        .unwrap();
    // The same documents again, but by another right: another key.
    desk.refusal(&broker).await;
    let again = desk.build(&broker, false).await;
    assert_ne!(first.root, again.root);
    assert_eq!(again.counts.recomputed, 3);
}

#[tokio::test]
async fn only_the_edited_documents_segments_and_their_ancestors_are_made_again() {
    let profile = "extends = \"narrative\"\n[segments]\nmin_chars = 200\nmax_chars = 800\n";
    let desk = Desk::new("mine", Some(profile)).await;
    let paragraph = |d: u32, n: u32| {
        format!(
            "In paragraph {n} of file {d} the surveyor describes room number {} of the house.\n\n",
            n * 7 + d
        )
    };
    for d in 0..30 {
        let text: String = (0..40).map(|n| paragraph(d, n)).collect();
        desk.publish(&format!("{d:02}.txt"), &text).await;
    }
    let owner = &desk.owner;
    let first = desk.build(owner, false).await;
    let text: String = (0..40)
        .map(|n| paragraph(if n == 20 { 99 } else { 15 }, n))
        .collect();
    desk.publish("15.txt", &text).await;
    let second = desk.build(owner, false).await;
    assert!(
        second.counts.recomputed < first.counts.nodes / 8,
        "{:?}",
        second.counts
    );
    let file = desk
        .workspace
        .export_run(&second.run_id, owner)
        .await
        .unwrap();
    for node in file
        .nodes
        .iter()
        .filter(|node| !node.reused && node.spec["kind"] == "leaf")
    {
        assert_eq!(node.spec["doc_id"], "15.txt");
    }
    desk.check_against_full(owner).await;
}

#[tokio::test]
async fn a_changed_reduction_limit_leaves_every_leaf_as_it_was() {
    let desk = Desk::new("mine", Some("extends = \"controlled\"\n")).await;
    for n in 0..12 {
        desk.publish(&format!("doc-{n:02}.txt"), &facts(n, "18 October"))
            .await;
    }
    let owner = &desk.owner;
    desk.build(owner, false).await;
    let changed = "extends = \"controlled\"\n[extraction]\nnode_claims = 7\n";
    std::fs::write(desk.workspace.profiles_folder().join("mine.toml"), changed).unwrap();
    let refusal = desk.refusal(owner).await;
    assert_eq!(refusal.reasons[0].kind, "profile");
    assert_eq!(
        desk.build(owner, false).await.counts.recomputed,
        4,
        "three reductions and the root"
    );
    assert_eq!(desk.summary(owner).await.claims.len(), 7);
}

#[tokio::test]
async fn a_case_file_with_nothing_eligible_is_served_as_such() {
    let desk = Desk::new("narrative", None).await;
    let owner = &desk.owner;
    assert_eq!(desk.refusal(owner).await.status, RefusalStatus::Absent);
    desk.build(owner, false).await;
    assert!(desk.summary(owner).await.claims.is_empty());
    desk.publish(
        "a.txt",
        "The pipe burst on Monday and the kitchen was flooded.",
    )
    .await;
    desk.workspace
        .withdraw(owner, &desk.case, &doc("a.txt"))
        .await
        .unwrap();
    desk.build(owner, false).await;
    assert!(desk.summary(owner).await.claims.is_empty());
}

#[tokio::test]
async fn two_builds_at_once_both_end_right() {
    let desk = controlled().await;
    let owner = &desk.owner;
    let (one, two) = tokio::join!(desk.build(owner, false), desk.build(owner, false));
    assert_eq!(one.root, two.root);
    desk.summary(owner).await;
    desk.check_against_full(owner).await;
}

#[tokio::test]
async fn results_taken_over_far_up_the_tree_are_those_of_a_full_build() {
    let profile =
        "extends = \"narrative\"\n[tree]\nmin = 2\nmax = 4\n[extraction]\nnode_claims = 2\n";
    let desk = Desk::new("mine", Some(profile)).await;
    let text = |n: u32, v: u32| {
        format!(
            "The surveyor measured the moisture in room {n} of the house and noted value {v}.\n\n\
             Nobody answered the door of flat {n} although the appointment had been confirmed.\n"
        )
    };
    for n in 0..60 {
        desk.publish(&format!("{n:02}.txt"), &text(n, 1)).await;
    }
    let owner = &desk.owner;
    desk.build(owner, false).await;
    for n in [3, 31, 31, 59, 0] {
        desk.publish(&format!("{n:02}.txt"), &text(n, 100 + n))
            .await;
        desk.publish(&format!("{n:02}.txt"), &text(n + 500, 7))
            .await;
        desk.check_against_full(owner).await;
    }
}
