//! `outpost stop`: ends the user's server.

use std::process::ExitCode;

use outpost_client::ProcessState;

use super::runtime::run_command;
use crate::{
    detached,
    render::{command_line, out},
    user_server::{self, StopOutcome},
};

pub(crate) fn run() -> ExitCode {
    run_command(stop())
}

async fn stop() -> anyhow::Result<ExitCode> {
    let sessions = match user_server::stop(detached::brief_options()).await? {
        StopOutcome::NotRunning => {
            out::lines(["your server is not running"])?;
            return Ok(ExitCode::SUCCESS);
        }
        StopOutcome::Ended(sessions) => sessions,
    };
    let running = detached::processes(&sessions, true).into_iter();
    let running = running.filter(|(_, process)| process.state != ProcessState::Closed);
    let ended = running.map(|(session, process)| {
        let command = detached::command_of(session, &process.argv);
        let id = command_line::visible(&process.process_id);
        format!("ended {id}  {command}")
    });
    out::lines(ended)?;
    out::lines(["stopped your server"])?;
    Ok(ExitCode::SUCCESS)
}
