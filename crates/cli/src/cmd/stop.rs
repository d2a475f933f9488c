//! `outpost stop`: ends the user's server.

use std::process::ExitCode;

use outpost_client::ProcessState;

use crate::{detached, render::out, user_server};

/// Stops the server, and prints what ended with it.
pub(crate) async fn stop() -> anyhow::Result<ExitCode> {
    let Some(sessions) = user_server::stop(detached::brief_options()).await? else {
        out::lines(["your server is not running"])?;
        if user_server::was_killed() {
            out::note(user_server::WAS_KILLED);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let running = detached::processes(&sessions, true).into_iter();
    let running = running.filter(|(_, process)| process.state != ProcessState::Closed);
    let ended = running.map(|(session, process)| {
        let command = detached::command_of(session, &process.argv);
        format!("ended {}  {command}", process.process_id)
    });
    out::lines(ended.chain(["stopped your server".to_owned()]))?;
    Ok(ExitCode::SUCCESS)
}
