//! Runs tasks concurrently and returns their results in order.

use tokio::task::JoinSet;

/// Runs `work` for each item, at most `limit` at a time. Dropping the future aborts the
/// running tasks.
pub(super) async fn concurrent<I, T, F>(
    items: impl IntoIterator<Item = I>,
    limit: usize,
    work: impl Fn(I) -> F,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut items = items.into_iter().enumerate();
    let mut tasks = JoinSet::new();
    let mut results: Vec<(usize, T)> = Vec::new();
    loop {
        while tasks.len() < limit {
            let Some((index, item)) = items.next() else {
                break;
            };
            let work = work(item);
            tasks.spawn(async move { (index, work.await) });
        }
        match tasks.join_next().await {
            Some(Ok(result)) => results.push(result),
            // The panic hook has reported the panic.
            Some(Err(_)) => {}
            None => break,
        }
    }
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn results_are_in_order_of_items() {
        let results = concurrent(0..20_u64, 4, |n| async move {
            // sleep: time is paused, and the tasks must complete out of order
            tokio::time::sleep(Duration::from_millis(100 - n)).await;
            n
        });
        assert_eq!(results.await, (0..20).collect::<Vec<_>>());
    }
}
