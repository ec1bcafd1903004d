//! Builds, results, model calls, claims and quotes as PROV-O.

use std::collections::BTreeSet;

use factum_base::PrincipalId;
use factum_casefile::NodeStatus;
use oxrdf::{Literal, NamedNode};

use super::lineage::{ResultId, ResultLineage, Source, SummaryLineage, Used};
use super::names::{self, label, prov, term, xsd};
use super::telling::Telling;

impl Telling<'_> {
    fn used(&self, used: &Used) -> NamedNode {
        match used {
            Used::Version(doc_id, version) => self.iris.version(doc_id, *version),
            Used::Result(id) => self.iris.result(id),
        }
    }

    fn principal(&mut self, principal: &PrincipalId) {
        self.triples
            .about(names::principal(principal))
            .a(&["Agent"])
            .ours(&["Principal"])
            .text(label(), principal.as_str());
    }

    pub(super) fn agents(&mut self) {
        for (id, agent) in &self.lineage.agents {
            let mut about = self.triples.about(names::agent(id));
            about
                .a(&["Agent", "SoftwareAgent"])
                .ours(&["Generator"])
                .text(term("kind"), &agent.kind)
                .text(term("identity"), &agent.identity);
            if id.model {
                about.ours(&["Model"]);
            }
            for name in &agent.names {
                about.text(label(), name);
            }
        }
    }

    pub(super) fn runs(&mut self) {
        let lineage = self.lineage;
        for run in &lineage.runs {
            self.principal(&run.principal);
            let used: BTreeSet<NamedNode> = run.used.iter().map(|used| self.used(used)).collect();
            let plan = names::plan(&run.context);
            let association = self.iris.association(&run.run_id);
            let mut about = self.triples.about(self.iris.run(&run.run_id));
            about
                .a(&["Activity"])
                .ours(&["Build"])
                .text(label(), &run.run_id)
                .time(prov("startedAtTime"), run.started_at)
                .time(prov("endedAtTime"), run.finished_at)
                .is(prov("wasAssociatedWith"), names::agent(&run.agent))
                .is(prov("wasAssociatedWith"), names::principal(&run.principal))
                .is(prov("qualifiedAssociation"), association.clone())
                .is(term("summary"), self.iris.result(&run.summary))
                .is(term("atEvent"), self.iris.event(run.event))
                .flag(term("full"), run.full);
            if run.outline {
                about.flag(term("outline"), true);
            }
            for used in used {
                about.is(prov("used"), used);
            }
            self.triples
                .about(association)
                .a(&["Association"])
                .is(prov("agent"), names::agent(&run.agent))
                .is(prov("hadPlan"), plan.clone());
            self.triples
                .about(plan)
                .a(&["Entity", "Plan"])
                .ours(&["Profile"])
                .text(label(), &run.profile);
            self.triples
                .about(names::agent(&run.agent))
                .is(prov("actedOnBehalfOf"), names::principal(&run.principal));
        }
        // Runs that are not told, but made what those told took over.
        let told: BTreeSet<&str> = lineage.runs.iter().map(|run| &*run.run_id).collect();
        let makers = lineage.results.keys().map(|id| &*id.run_id);
        let asked = lineage.answers.keys().filter_map(|id| id.run_id.as_deref());
        let others: BTreeSet<&str> = makers.chain(asked).collect();
        for run_id in others.difference(&told) {
            self.triples
                .about(self.iris.run(run_id))
                .a(&["Activity"])
                .ours(&["Build"])
                .text(label(), run_id);
        }
    }

    pub(super) fn results(&mut self) {
        let lineage = self.lineage;
        for (id, result) in &lineage.results {
            self.result(id, result);
            if let Some(summary) = &result.summary {
                self.summary(id, summary);
            }
        }
    }

    fn result(&mut self, id: &ResultId, result: &ResultLineage) {
        let mut about = self.triples.about(self.iris.result(id));
        about
            .a(&["Entity"])
            .ours(&["NodeResult"])
            .text(term("nodeKey"), &id.key.to_hex())
            .text(term("status"), result.status.word())
            .is(prov("wasGeneratedBy"), self.iris.run(&id.run_id));
        if let Some((claims, withheld)) = result.counts {
            about
                .number(term("claims"), claims as u64)
                .number(term("withheldClaims"), withheld as u64);
        }
        match &result.source {
            Source::Leaf {
                doc_id,
                version,
                segment,
            } => {
                about
                    .ours(&["Leaf"])
                    .is(prov("wasDerivedFrom"), self.iris.version(doc_id, *version));
                if let Some(span) = segment {
                    about
                        .number(term("start"), u64::from(span.start))
                        .number(term("end"), u64::from(span.end));
                }
            }
            Source::Reduction {
                role,
                children,
                invalid,
            } => {
                about.ours(&["Reduction"]).text(term("role"), role);
                for child in children {
                    about.is(prov("wasDerivedFrom"), self.iris.result(child));
                }
                for child in invalid {
                    about.is(term("nothingFrom"), self.iris.result(child));
                }
            }
        }
        if let Some(answer) = &result.answer {
            about.is(prov("wasDerivedFrom"), self.iris.answer(answer));
        }
    }

    fn summary(&mut self, id: &ResultId, summary: &SummaryLineage) {
        self.principal(&summary.principal);
        let iri = self.iris.result(id);
        let mut about = self.triples.about(iri.clone());
        about
            .a(&["Collection"])
            .ours(&["Summary"])
            .text(
                label(),
                &format!("summary for {}, made by {}", summary.principal, id.run_id),
            )
            .is(term("principal"), names::principal(&summary.principal))
            .is(prov("wasAttributedTo"), names::agent(&summary.agent));
        if let Some(at) = summary.finished_at {
            about.time(prov("generatedAtTime"), at);
        }
        if let Some(stale) = summary.stale {
            about
                .is(prov("wasInvalidatedBy"), self.iris.event(stale.event))
                .time(prov("invalidatedAtTime"), stale.at);
        }
        for (claim, number) in summary.claims.iter().zip(1..) {
            let name = self.iris.claim(id, number);
            self.triples
                .about(iri.clone())
                .is(prov("hadMember"), name.clone());
            let mut about = self.triples.about(name);
            about
                .a(&["Entity"])
                .ours(&["Claim"])
                .number(term("number"), number as u64)
                .text(prov("value"), &claim.text)
                .text(term("verdict"), &claim.verdict)
                .text(term("method"), &claim.method)
                .is(prov("wasGeneratedBy"), self.iris.run(&id.run_id));
            for evidence in &claim.evidence {
                about.is(prov("wasDerivedFrom"), self.iris.quote(evidence));
            }
        }
    }

    pub(super) fn quotes(&mut self) {
        for (id, quote) in &self.lineage.quotes {
            let version = self.iris.version(&id.doc_id, id.version);
            self.triples
                .about(self.iris.quote(id))
                .a(&["Entity"])
                .ours(&["Quote"])
                .text(prov("value"), quote)
                // A quotation is a derivation; said outright for those who don't infer.
                .is(prov("wasQuotedFrom"), version.clone())
                .is(prov("wasDerivedFrom"), version)
                .number(term("start"), u64::from(id.span.start))
                .number(term("end"), u64::from(id.span.end));
        }
    }

    pub(super) fn answers(&mut self) {
        for (id, answer) in &self.lineage.answers {
            let iri = self.iris.answer(id);
            self.triples
                .about(iri.clone())
                .a(&["Entity"])
                .ours(&["Answer"])
                .text(term("requestSha256"), &id.digest.to_hex())
                .text(term("stop"), &answer.stop)
                .is(prov("wasAttributedTo"), names::agent(&answer.agent));
            // An answer first given elsewhere: where, is not for this reader.
            let Some(run_id) = &id.run_id else {
                continue;
            };
            let used: BTreeSet<NamedNode> =
                answer.used.iter().map(|used| self.used(used)).collect();
            let call = self.iris.call(run_id, id);
            self.triples
                .about(iri)
                .is(prov("wasGeneratedBy"), call.clone());
            let seconds =
                Literal::new_typed_literal(format!("{:.3}", answer.seconds), xsd("decimal"));
            let mut about = self.triples.about(call);
            about
                .a(&["Activity"])
                .ours(&["ModelCall"])
                .text(label(), &format!("a model call of {run_id}"))
                .is(prov("wasAssociatedWith"), names::agent(&answer.agent))
                .is(term("build"), self.iris.run(run_id))
                .number(term("promptTokens"), u64::from(answer.prompt_tokens))
                .number(term("newTokens"), u64::from(answer.new_tokens))
                .number(term("retries"), u64::from(answer.retries))
                .is(term("seconds"), seconds);
            for used in used {
                about.is(prov("used"), used);
            }
        }
    }
}

/// Whether anything of a child was handed on.
pub(super) const fn handed_on(status: NodeStatus) -> bool {
    matches!(status, NodeStatus::Valid | NodeStatus::Partial)
}
