//! Answers to requests that came together, which are given together.

use rmcp::model::RequestId;
use serde_json::Value;

/// All batches whose answers aren't complete.
#[derive(Debug, Default)]
pub(super) struct Batches {
    open: Vec<Batch>,
}

#[derive(Debug)]
struct Batch {
    waiting: Vec<RequestId>,
    answers: Vec<Value>,
}

impl Batches {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a request of this id has no answer yet.
    pub(super) fn waits_for(&self, id: &RequestId) -> bool {
        self.open.iter().any(|batch| batch.waiting.contains(id))
    }

    /// Requests came together, and some answers are known at once. If that is all of
    /// them they can be given; nothing is said where nothing was asked.
    pub(super) fn begin(&mut self, waiting: Vec<RequestId>, answers: Vec<Value>) -> Option<Value> {
        self.open.push(Batch { waiting, answers });
        self.complete(self.open.len() - 1)
    }

    /// What there is to be said, now that a request has its answer: that alone, if
    /// the request came alone, or all answers if this was the last one.
    pub(super) fn answered(&mut self, id: &RequestId, answer: Value) -> Option<Value> {
        let Some(at) = self.remove(id) else {
            return Some(answer);
        };
        self.open[at].answers.push(answer);
        self.complete(at)
    }

    /// Nobody waits for this one any more, and it won't be answered.
    pub(super) fn called_off(&mut self, id: &RequestId) -> Option<Value> {
        let at = self.remove(id)?;
        self.complete(at)
    }

    /// Says which batch it was waited for in.
    fn remove(&mut self, id: &RequestId) -> Option<usize> {
        self.open.iter_mut().position(|batch| {
            let waiting = batch.waiting.iter().position(|waiting| waiting == id);
            waiting.map(|at| batch.waiting.remove(at)).is_some()
        })
    }

    fn complete(&mut self, at: usize) -> Option<Value> {
        if !self.open[at].waiting.is_empty() {
            return None;
        }
        let answers = self.open.remove(at).answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    #[test]
    fn what_came_together_is_answered_together() {
        let mut batches = Batches::default();
        assert_eq!(batches.begin(vec![id(1), id(2)], vec![json!("no")]), None);
        assert_eq!(batches.begin(vec![id(3)], vec![]), None);
        assert!(batches.waits_for(&id(2)) && batches.waits_for(&id(3)));
        assert!(!batches.waits_for(&id(9)));
        assert_eq!(
            batches.answered(&id(9), json!("alone")),
            Some(json!("alone"))
        );
        assert_eq!(batches.answered(&id(2), json!("two")), None);
        assert_eq!(
            batches.answered(&id(3), json!("three")),
            Some(json!(["three"]))
        );
        assert_eq!(
            batches.answered(&id(1), json!("one")),
            Some(json!(["no", "two", "one"]))
        );
        assert!(batches.is_empty());
    }

    #[test]
    fn nobody_waits_for_what_was_called_off() {
        let mut batches = Batches::default();
        batches.begin(vec![id(1), id(2)], vec![]);
        assert_eq!(batches.answered(&id(1), json!("one")), None);
        assert_eq!(batches.called_off(&id(2)), Some(json!(["one"])));
        batches.begin(vec![id(3)], vec![]);
        assert_eq!(batches.called_off(&id(3)), None);
        assert!(batches.is_empty());
    }

    #[test]
    fn what_needs_no_answer_gets_none() {
        let mut batches = Batches::default();
        assert_eq!(batches.begin(vec![], vec![]), None);
        assert_eq!(
            batches.begin(vec![], vec![json!("no")]),
            Some(json!(["no"]))
        );
        assert!(batches.is_empty());
    }
}
