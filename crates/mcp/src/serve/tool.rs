//! The tool interface: arguments, output, annotations, and the context of a call.

use std::{convert::Infallible, future::Future, pin::Pin, sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{
        self, CallToolResult, ContentBlock, ErrorData, JsonObject, ProgressNotificationParam,
        ProgressToken, ToolAnnotations,
    },
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::{ToolError, ToolServer, schema};

/// A tool. The implementing type is the tool's arguments.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// Tells the model when to use the tool, what it returns, and the alternatives.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;

    type Output: ToolOutput;

    /// Executes the call. Dropping the future does not undo its effects.
    fn call(
        self,
        server: &ToolServer,
        context: &CallContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// The result of a tool: structured content and the same as text.
pub(super) trait ToolOutput: Serialize + JsonSchema + Send + 'static {
    /// Formats the result for hosts that show text only.
    fn to_text(&self) -> String;
}

/// The side effects of a tool, as declared to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    ReadOnly,
    /// Not destructive, idempotent.
    Idempotent,
    /// Destructive, idempotent.
    DestructiveIdempotent,
    /// Destructive, not idempotent.
    Destructive,
    /// Any effect, also beyond the executor's host.
    OpenWorld,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let annotations = ToolAnnotations::with_title(title);
        let (destructive, idempotent, open_world) = match self {
            Effect::ReadOnly => return annotations.read_only(true).open_world(false),
            Effect::Idempotent => (false, true, false),
            Effect::DestructiveIdempotent => (true, true, false),
            Effect::Destructive => (true, false, false),
            Effect::OpenWorld => (true, false, true),
        };
        annotations
            .read_only(false)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }
}

type CallFuture<'a> = Pin<Box<dyn Future<Output = Result<CallToolResult, ErrorData>> + Send + 'a>>;

/// A type-erased tool, an item of the table of tools.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    pub(super) describe: fn() -> model::Tool,
    pub(super) call: for<'a> fn(JsonObject, &'a ToolServer, &'a CallContext) -> CallFuture<'a>,
}

impl ToolEntry {
    pub(super) const fn of<T: Tool>() -> Self {
        ToolEntry {
            name: T::NAME,
            describe: describe::<T>,
            call: |arguments, server, context| Box::pin(call::<T>(arguments, server, context)),
        }
    }
}

fn describe<T: Tool>() -> model::Tool {
    let input = Arc::new(schema::of_arguments::<T>());
    model::Tool::new(T::NAME, T::DESCRIPTION, input)
        .with_title(T::TITLE)
        .with_raw_output_schema(Arc::new(schema::of_output::<T::Output>()))
        .with_annotations(T::EFFECT.annotations(T::TITLE))
}

async fn call<T: Tool>(
    arguments: JsonObject,
    server: &ToolServer,
    context: &CallContext,
) -> Result<CallToolResult, ErrorData> {
    let arguments = serde_json::from_value(arguments.into());
    let result = match arguments {
        Ok(tool) => T::call(tool, server, context).await,
        Err(reason) => Err(ToolError::Arguments {
            tool: T::NAME,
            reason,
        }),
    };
    match result {
        Ok(output) => success(&output),
        Err(error) => error.into_response(),
    }
}

fn success<O: ToolOutput>(output: &O) -> Result<CallToolResult, ErrorData> {
    let structured = serde_json::to_value(output).map_err(|error| {
        ErrorData::internal_error(format!("cannot encode the result: {error}"), None)
    })?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(output.to_text())]);
    result.structured_content = Some(structured);
    Ok(result)
}

/// The context of a call in progress: cancellation and progress notifications.
pub(super) struct CallContext {
    /// Cancelled when the client cancels the call.
    pub(super) cancelled: CancellationToken,
    /// Cancelled when the session ends.
    pub(super) session_ended: CancellationToken,
    /// The receiver of progress notifications, if the client asked for them.
    pub(super) progress: Option<(Peer<RoleServer>, ProgressToken)>,
    pub(super) progress_interval: Duration,
}

impl CallContext {
    /// Runs `work` until it completes, the call is cancelled, or the session ends. Sends
    /// progress notifications meanwhile: the elapsed time out of `total`, with a `message`.
    pub(super) async fn run<T>(
        &self,
        total: Duration,
        message: impl Fn() -> String,
        work: impl Future<Output = T>,
    ) -> Result<T, ToolError> {
        tokio::select! {
            result = work => Ok(result),
            () = self.cancelled.cancelled() => Err(ToolError::Cancelled),
            () = self.session_ended.cancelled() => Err(ToolError::SessionEnded),
            never = self.report_progress(total, message) => match never {},
        }
    }

    async fn report_progress(&self, total: Duration, message: impl Fn() -> String) -> Infallible {
        let Some((peer, token)) = &self.progress else {
            return std::future::pending().await;
        };
        let started = Instant::now();
        let mut ticks = interval_at(started + self.progress_interval, self.progress_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let elapsed = started.elapsed().as_secs_f64();
            let notification = ProgressNotificationParam::new(token.clone(), elapsed)
                .with_total(total.as_secs_f64())
                .with_message(message());
            // Fails if the client has disconnected, which ends the session soon.
            let _ = peer.notify_progress(notification).await;
        }
    }
}
