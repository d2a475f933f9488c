//! `outpost stop`: ends the user's server.

use std::process::ExitCode;

use outpost_client::ProcessState;

use super::task::perform;
use crate::{
    detached,
    home::{self, Quit},
    render::{command_line, out},
};

pub(crate) fn run() -> ExitCode {
    perform(stop())
}

async fn stop() -> anyhow::Result<ExitCode> {
    let sessions = match home::quit(detached::passing()).await? {
        Quit::NotRunning => {
            out::lines(["no server of this user is running"])?;
            return Ok(ExitCode::SUCCESS);
        }
        Quit::Ended(sessions) => sessions,
    };
    let running = detached::processes(&sessions, true).into_iter();
    let running = running.filter(|(_, process)| process.state != ProcessState::Closed);
    let ended = running.map(|(session, process)| {
        let command = detached::command_of(session, &process.argv);
        let id = command_line::visible(&process.process_id);
        format!("ended {id}  {command}")
    });
    out::lines(ended)?;
    out::lines(["the server of this user has ended"])?;
    Ok(ExitCode::SUCCESS)
}
