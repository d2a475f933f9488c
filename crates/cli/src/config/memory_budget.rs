//! The default of `memory_budget`.

use outpost_engine::Limits;
use outpost_server::Settings;

/// The part of the available memory that the budget is by default, at most.
const BUDGET_PART: usize = 4;

/// The lowest default budget.
const LEAST_MEMORY_BUDGET: usize = 16 * 1024 * 1024;

/// The usual memory budget, or less where little memory is available: the server itself and the processes
/// need memory too.
pub(super) fn default_memory_budget() -> usize {
    let (limits, settings) = (Limits::default(), Settings::default());
    let usual = limits.kept_output_bytes + settings.message_memory_bytes;
    let available = outpost_engine::memory_limit().map_or(usize::MAX, |bytes| bytes as usize);
    (available / BUDGET_PART).clamp(LEAST_MEMORY_BUDGET, usual)
}
