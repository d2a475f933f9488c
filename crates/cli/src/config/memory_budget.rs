//! The default of `memory_budget`.

use outpost_engine::Limits;
use outpost_server::Settings;

/// The default budget is at most one part in this many of the available memory.
const BUDGET_PART: usize = 4;

/// The lowest default budget.
const LEAST_MEMORY_BUDGET: usize = 16 * 1024 * 1024;

/// Returns the default memory budget: the sum of the default budgets for output and messages, or a
/// quarter of the available memory if that is less. The server itself and the processes need memory too.
pub(super) fn default_memory_budget() -> usize {
    let (limits, settings) = (Limits::default(), Settings::default());
    let usual = limits.kept_output_bytes + settings.message_memory_bytes;
    let available = outpost_engine::memory_limit().map_or(usize::MAX, |bytes| bytes as usize);
    (available / BUDGET_PART).clamp(LEAST_MEMORY_BUDGET, usual)
}
