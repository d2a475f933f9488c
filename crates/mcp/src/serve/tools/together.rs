//! Several things at once, and their results in order.

use tokio::task::JoinSet;

/// Does something with each item, at most so many at once. Dropping this stops
/// what is under way.
pub(super) async fn together<I, T, F>(
    items: impl IntoIterator<Item = I>,
    at_once: usize,
    work: impl Fn(I) -> F,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut items = items.into_iter().enumerate();
    let mut under_way = JoinSet::new();
    let mut done: Vec<(usize, T)> = Vec::new();
    loop {
        while under_way.len() < at_once {
            let Some((index, item)) = items.next() else {
                break;
            };
            let work = work(item);
            under_way.spawn(async move { (index, work.await) });
        }
        match under_way.join_next().await {
            Some(Ok(result)) => done.push(result),
            // One that panicked has said so itself.
            Some(Err(_)) => {}
            None => break,
        }
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn results_are_in_order_however_long_they_take() {
        let results = together(0..20_u64, 4, |n| async move {
            // sleep: time is paused, and they are to end in another order
            tokio::time::sleep(Duration::from_millis(100 - n)).await;
            n
        });
        assert_eq!(results.await, (0..20).collect::<Vec<_>>());
    }
}
