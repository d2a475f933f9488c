//! The tool interface: arguments, output, annotations, and the context of a call.

use std::{convert::Infallible, fmt::Display, future::Future, pin::Pin, sync::Arc, time::Duration};

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

/// A tool. The implementing type is the tool's arguments. Its doc comment is the description,
/// which tells the model when to use the tool, what it returns, and the alternatives.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// The result: structured content, and the same as text for hosts that show only that.
    type Output: Serialize + JsonSchema + Display + Send;

    /// Executes the call. Dropping the future does not undo its effects.
    fn call(
        self,
        context: &CallContext<'_>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
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
    title: &'static str,
    effect: Effect,
    pub(super) describe: fn(&ToolEntry) -> model::Tool,
    pub(super) call: for<'a> fn(&'static str, JsonObject, &'a CallContext<'a>) -> CallFuture<'a>,
}

impl ToolEntry {
    pub(super) const fn of<T: Tool>(
        name: &'static str,
        title: &'static str,
        effect: Effect,
    ) -> Self {
        ToolEntry {
            name,
            title,
            effect,
            describe: describe::<T>,
            call: |name, arguments, context| Box::pin(call::<T>(name, arguments, context)),
        }
    }
}

fn describe<T: Tool>(entry: &ToolEntry) -> model::Tool {
    let (input, description) = schema::of_arguments::<T>();
    model::Tool::new(entry.name, description, Arc::new(input))
        .with_title(entry.title)
        .with_raw_output_schema(Arc::new(schema::of_output::<T::Output>()))
        .with_annotations(entry.effect.annotations(entry.title))
}

async fn call<T: Tool>(
    tool: &'static str,
    arguments: JsonObject,
    context: &CallContext<'_>,
) -> Result<CallToolResult, ErrorData> {
    let result = match serde_json::from_value::<T>(arguments.into()) {
        Ok(arguments) => arguments.call(context).await,
        Err(reason) => Err(ToolError::Arguments { tool, reason }),
    };
    let output = match result {
        Ok(output) => output,
        Err(error) => return error.into_response(),
    };
    let structured = serde_json::to_value(&output).map_err(|error| {
        ErrorData::internal_error(format!("cannot encode the result: {error}"), None)
    })?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(output.to_string())]);
    result.structured_content = Some(structured);
    Ok(result)
}

/// The context of a call in progress: the server, cancellation and progress notifications.
pub(super) struct CallContext<'a> {
    pub(super) server: &'a ToolServer,
    /// Cancelled when the client cancels the call.
    pub(super) cancelled: CancellationToken,
    /// The receiver of progress notifications, if the client asked for them.
    pub(super) progress: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl CallContext<'_> {
    /// Runs a file operation, and sends progress notifications with `message` meanwhile.
    pub(super) async fn run_file_operation<T>(
        &self,
        message: &str,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let total = self.server.limits().search_timeout;
        self.run(total, || message.to_owned(), work).await?
    }

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
            () = self.server.session_ended.cancelled() => Err(ToolError::SessionEnded),
            never = self.report_progress(total, message) => match never {},
        }
    }

    async fn report_progress(&self, total: Duration, message: impl Fn() -> String) -> Infallible {
        let Some((peer, token)) = &self.progress else {
            return std::future::pending().await;
        };
        let started = Instant::now();
        let interval = self.server.limits().progress;
        let mut ticks = interval_at(started + interval, interval);
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
