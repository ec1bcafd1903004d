//! The command line: reads arguments, calls the engine, prints what it returns.

mod answer_text;
mod cli;
mod commands;
mod demo;
mod failure;
mod html;
mod live_answer;
mod models;
mod moment;
mod output;
mod progress;
mod signals;
mod text;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let arguments = match cli::Cli::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            if code == 2 && std::env::args_os().any(|argument| argument == "--json") {
                failure::usage(&error.to_string());
            }
            return ExitCode::from(code);
        }
    };
    #[cfg(all(feature = "local", unix))]
    if arguments.command.computes() {
        models::patience::wait_without_spinning();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            output::warn(&format!("factum: can't start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let output = output::Output::new(arguments.json);
    match runtime.block_on(commands::run(arguments, &output)) {
        Ok(code) => ExitCode::from(output::exit_code(code)),
        Err(error) => ExitCode::from(failure::report(&error, &output)),
    }
}
