//! After any series of events: the kept tree serves exactly when a fold of the events says so, an
//! incremental build equals a full one node by node, and verification finds nothing.

use factum_casefile::Snapshot;
use factum_engine::serve::Served;
use proptest::prelude::*;

use crate::support::{Desk, doc, who};

const PROFILE: &str =
    "extends = \"facts\"\n[tree]\nmin = 2\nmax = 4\n[segments]\nmin_chars = 64\nmax_chars = 200\n";

#[derive(Debug, Clone)]
enum Op {
    Publish(u8, u8),
    Withdraw(u8),
    Reinstate(u8),
    Grant(Option<u8>),
    Revoke(Option<u8>),
    RevokeOwner(u8),
    GrantOwner(u8),
}

fn ops() -> impl Strategy<Value = Vec<Vec<Op>>> {
    let one = prop_oneof![
        6 => (0u8..40, 0u8..4).prop_map(|(d, v)| Op::Publish(d, v)),
        1 => (0u8..40).prop_map(Op::Withdraw),
        1 => (0u8..40).prop_map(Op::Reinstate),
        2 => proptest::option::weighted(0.8, 0u8..40).prop_map(Op::Grant),
        1 => proptest::option::weighted(0.8, 0u8..40).prop_map(Op::Revoke),
        1 => (0u8..40).prop_map(Op::RevokeOwner),
        1 => (0u8..40).prop_map(Op::GrantOwner),
    ];
    prop::collection::vec(prop::collection::vec(one, 1..8), 1..7)
}

fn text(d: u8, v: u8) -> String {
    let lines: String = (0..=(u32::from(d % 5) * 3))
        .map(|n| {
            format!(
                "In part {n} the expert of file {d} wrote about the water in room {}.\n\n",
                n * 3 + u32::from(v)
            )
        })
        .collect();
    format!("Date of loss: {} March 2026\r\n\r\n{lines}", 1 + v)
}

async fn apply(desk: &Desk, op: &Op) {
    let (workspace, owner, case, ann) = (&desk.workspace, &desk.owner, &desk.case, who("ann"));
    let name = |d: &u8| doc(&format!("d{d:02}.txt"));
    // Operations on documents that do not exist yet are refused, and that is fine.
    match op {
        Op::Publish(d, v) => desk.publish(&format!("d{d:02}.txt"), &text(*d, *v)).await,
        Op::Withdraw(d) => drop(workspace.withdraw(owner, case, &name(d)).await),
        Op::Reinstate(d) => drop(workspace.reinstate(owner, case, &name(d)).await),
        Op::Grant(d) => {
            let docs: Vec<_> = d.iter().map(name).collect();
            drop(workspace.grant(owner, case, &docs, &ann).await);
        }
        Op::Revoke(d) => {
            let docs: Vec<_> = d.iter().map(name).collect();
            drop(workspace.revoke(owner, case, &docs, &ann).await);
        }
        Op::RevokeOwner(d) => drop(workspace.revoke(owner, case, &[name(d)], owner).await),
        Op::GrantOwner(d) => drop(workspace.grant(owner, case, &[name(d)], owner).await),
    }
}

async fn check(rounds: &[Vec<Op>]) {
    let desk = Desk::new("mine", Some(PROFILE)).await;
    let ann = who("ann");
    let mut built: [Option<Snapshot>; 2] = [None, None];
    for round in rounds {
        for op in round {
            apply(&desk, op).await;
        }
        let history = desk
            .workspace
            .history(&desk.case, &desk.owner)
            .await
            .unwrap();
        let events: Vec<_> = history
            .events
            .into_iter()
            .filter_map(|line| line.event)
            .collect();
        for (n, principal) in [&desk.owner, &ann].into_iter().enumerate() {
            let now = Snapshot::fold(&events, &desk.owner, principal, u64::MAX);
            let Ok(served) = desk.workspace.serve(&desk.case, principal, None).await else {
                assert!(
                    now.slots.iter().all(|slot| !slot.eligible || !slot.active),
                    "wrongly forbidden"
                );
                continue;
            };
            let current = matches!(served, Served::Current(_));
            assert_eq!(
                current,
                built[n].as_ref() == Some(&now),
                "served by anything but the snapshot"
            );
            desk.check_against_full(principal).await;
            assert!(matches!(desk.served(principal).await, Served::Current(_)));
            built[n] = Some(now);
        }
    }
    let found = desk
        .workspace
        .verify_case(&desk.case, &desk.owner)
        .await
        .unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_full_and_serving_equals_the_fold(rounds in ops()) {
        tokio::runtime::Runtime::new().unwrap().block_on(check(&rounds));
    }
}
