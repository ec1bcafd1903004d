//! One function a command.

pub(crate) mod ask;
mod audit;
mod changes;
mod controlled;
pub(crate) mod eval;
pub(crate) mod measures;
mod model;
mod prov;
mod reading;
mod verify_experiment;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use factum_base::{CaseId, PrincipalId};
use factum_engine::Workspace;
use factum_engine::workspace::Clock;

use crate::cli::{Cli, Command, ExperimentCommand};
use crate::demo;
use crate::failure::Usage;
use crate::models::Shelf;
use crate::output::Output;

/// What every command on a workspace needs.
pub(crate) struct Context<'o> {
    pub(crate) workspace: Workspace,
    pub(crate) principal: PrincipalId,
    pub(crate) output: &'o Output,
}

/// The system's clock.
pub(crate) fn clock() -> Clock {
    Arc::new(|| {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

pub(crate) fn case_id(text: &str) -> Result<CaseId> {
    Ok(CaseId::new(text)?)
}

/// Runs a command and gives its exit code.
pub(crate) async fn run(cli: Cli, output: &Output) -> Result<u8> {
    let principal = PrincipalId::new(cli.principal.as_str())?;
    match cli.command {
        Command::Demo(args) => return demo::run(args, output).await,
        Command::Experiment {
            command: ExperimentCommand::Controlled { command },
        } => return controlled::controlled(command, output).await,
        Command::Experiment {
            command: ExperimentCommand::Scale { documents, keep },
        } => return measures::scale(documents, keep, output).await,
        Command::Eval { command } => return eval::eval(command, output).await,
        Command::Model { command } => return model::model(command, output).await,
        Command::Verify {
            what: Some(what),
            gold,
        } if verify_experiment::is_experiment(&what) => {
            return verify_experiment::verify(&what, gold.as_deref(), output);
        }
        Command::Verify { gold: Some(_), .. } => {
            return Err(Usage("--gold goes with the folder of an experiment".to_owned()).into());
        }
        Command::Init => return changes::init(&cli.directory, &principal, output).await,
        _ => {}
    }
    let mut workspace = Workspace::open(&cli.directory, clock()).await?;
    // Without a folder for models, there are none; extraction needs none.
    if let Ok(shelf) = Shelf::open() {
        workspace = workspace.with_models(Arc::new(shelf));
    }
    let context = Context {
        workspace,
        principal,
        output,
    };
    let code = on_workspace(cli.command, &context).await;
    context.workspace.close().await;
    code
}

async fn on_workspace(command: Command, context: &Context<'_>) -> Result<u8> {
    match command {
        Command::Case { command } => changes::case(command, context).await,
        Command::Add(args) => changes::add(args, context).await,
        Command::Sync { case, folder } => changes::sync(&case, &folder, context).await,
        Command::Withdraw { case, doc } => changes::set_active(&case, &doc, false, context).await,
        Command::Reinstate { case, doc } => changes::set_active(&case, &doc, true, context).await,
        Command::Grant { case, docs, to } => {
            changes::rights(&case, &docs, &to, true, context).await
        }
        Command::Revoke { case, docs, from } => {
            changes::rights(&case, &docs, &from, false, context).await
        }
        Command::Build {
            case,
            full,
            generator,
        } => measures::build(&case, full, &generator, context).await,
        Command::Ask(args) => ask::ask(args, context).await,
        Command::Conversation { command } => ask::conversation(command, context).await,
        Command::Compare { first, second } => measures::compare(&first, &second, context).await,
        Command::Audit { run, gold } => audit::run(&run, gold.as_deref(), context).await,
        Command::Verify { what, .. } => measures::verify(what.as_deref(), context).await,
        Command::Export { command } => measures::export(command, context).await,
        Command::Show {
            case,
            as_of,
            format,
            generator,
        } => {
            reading::show(
                &case,
                as_of.as_deref(),
                format,
                generator.as_deref(),
                context,
            )
            .await
        }
        Command::Status { case } => reading::status(case.as_deref(), context).await,
        Command::Why { case } => reading::why(&case, context).await,
        Command::Diff { case, runs } => reading::diff(&case, &runs, context).await,
        Command::Ledger { case } => reading::ledger(&case, context).await,
        Command::History { case } => reading::history(&case, context).await,
        Command::Demo(_)
        | Command::Eval { .. }
        | Command::Experiment { .. }
        | Command::Init
        | Command::Model { .. } => Ok(0),
    }
}
