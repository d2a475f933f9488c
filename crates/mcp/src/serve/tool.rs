//! What a tool is, and how it becomes one of the protocol's.

use std::{future::Future, pin::Pin, sync::Arc};

use rmcp::model::{self, CallToolResult, ContentBlock, ErrorData, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};

use super::{Call, Mishap, Workbench, schema};

/// A tool; a value of it is what it is called with.
pub(super) trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// For the model: when to use it, what it gives, and what to use instead.
    const DESCRIPTION: &'static str;
    const EFFECT: Effect;

    type Answer: Answer;

    /// Does it. Dropping this does not undo what was done.
    fn perform(
        self,
        bench: &Workbench,
        call: &Call,
    ) -> impl Future<Output = Result<Self::Answer, Mishap>> + Send;
}

/// What a tool says: members for programs, and words for who reads.
pub(super) trait Answer: Serialize + JsonSchema + Send + 'static {
    /// The same in words, without loss of anything that matters.
    fn words(&self) -> String;
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only looks.
    Looks,
    /// It changes something, and can be said twice.
    Sets,
    /// It may destroy something; the second time there is nothing left to do.
    Replaces,
    /// It may destroy something, and each time something else.
    Changes,
    /// It may do anything, here and elsewhere.
    Anything,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let hints = ToolAnnotations::with_title(title);
        match self {
            Effect::Looks => hints.read_only(true).open_world(false),
            Effect::Sets => changes(hints, false, true),
            Effect::Replaces => changes(hints, true, true),
            Effect::Changes => changes(hints, true, false),
            Effect::Anything => hints
                .read_only(false)
                .destructive(true)
                .idempotent(false)
                .open_world(true),
        }
    }
}

fn changes(hints: ToolAnnotations, destructive: bool, idempotent: bool) -> ToolAnnotations {
    hints
        .read_only(false)
        .destructive(destructive)
        .idempotent(idempotent)
        .open_world(false)
}

/// A call on its way.
type Performing<'a> = Pin<Box<dyn Future<Output = Result<CallToolResult, ErrorData>> + Send + 'a>>;

/// A row of the table of tools.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) describe: fn() -> model::Tool,
    pub(super) perform: for<'a> fn(JsonObject, &'a Workbench, &'a Call) -> Performing<'a>,
}

impl Row {
    pub(super) const fn of<T: Tool>() -> Self {
        Row {
            name: T::NAME,
            describe: describe::<T>,
            perform: |arguments, bench, call| Box::pin(perform::<T>(arguments, bench, call)),
        }
    }
}

fn describe<T: Tool>() -> model::Tool {
    model::Tool::new(
        T::NAME,
        T::DESCRIPTION,
        Arc::new(schema::of_arguments::<T>()),
    )
    .with_title(T::TITLE)
    .with_raw_output_schema(Arc::new(schema::of_answer::<T::Answer>()))
    .with_annotations(T::EFFECT.annotations(T::TITLE))
}

async fn perform<T: Tool>(
    arguments: JsonObject,
    bench: &Workbench,
    call: &Call,
) -> Result<CallToolResult, ErrorData> {
    let parsed = serde_json::from_value(arguments.into()).map_err(|reason| Mishap::Arguments {
        tool: T::NAME,
        reason,
    });
    let answer = match parsed {
        Ok(tool) => T::perform(tool, bench, call).await,
        Err(mishap) => Err(mishap),
    };
    match answer {
        Ok(answer) => answered(&answer),
        Err(mishap) => mishap.answer(),
    }
}

fn answered<A: Answer>(answer: &A) -> Result<CallToolResult, ErrorData> {
    let members = serde_json::to_value(answer);
    let members =
        members.map_err(|error| ErrorData::internal_error(format!("no answer: {error}"), None))?;
    let mut result = CallToolResult::success(vec![ContentBlock::text(answer.words())]);
    result.structured_content = Some(members);
    Ok(result)
}
