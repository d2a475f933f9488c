//! One member of what is in force, whatever its type.

use serde_json::Value;

use super::{
    InForce,
    spoken::{Spoken, Word, Wrong},
};

/// A member that can be shown and set, its type hidden: what a row of the table
/// of settings points to.
pub(crate) trait Field: Sync {
    /// What a variable's text stands for.
    fn value_of_text(&self, text: &str) -> Value;
    /// What a flag stands for that was given once or more often.
    fn value_of_words(&self, words: &[String]) -> Value;
    /// The value in the form in which it is shown, if it is one.
    fn read(&self, value: &Value) -> Result<Value, Wrong>;
    /// Puts the value in force.
    fn apply(&self, in_force: &mut InForce, value: &Value) -> Result<(), Wrong>;
    /// What is in force.
    fn shown(&self, in_force: &InForce) -> Value;
    /// The only words there are for it, if they can be counted.
    fn words(&self) -> Vec<Word>;
    /// Whether its flag may be given more than once.
    fn is_list(&self) -> bool;
}

/// A member of type `T`.
pub(crate) struct Member<T: 'static> {
    pub(crate) get: fn(&InForce) -> T,
    pub(crate) set: fn(&mut InForce, T),
}

impl<T: Spoken> Field for Member<T> {
    fn value_of_text(&self, text: &str) -> Value {
        T::value_of_text(text)
    }

    fn value_of_words(&self, words: &[String]) -> Value {
        if T::IS_LIST {
            return words.iter().map(String::as_str).collect();
        }
        words
            .last()
            .map_or(Value::Null, |word| T::value_of_text(word))
    }

    fn read(&self, value: &Value) -> Result<Value, Wrong> {
        T::from_value(value).map(|value| value.to_value())
    }

    fn apply(&self, in_force: &mut InForce, value: &Value) -> Result<(), Wrong> {
        T::from_value(value).map(|value| (self.set)(in_force, value))
    }

    fn shown(&self, in_force: &InForce) -> Value {
        (self.get)(in_force).to_value()
    }

    fn words(&self) -> Vec<Word> {
        T::words()
    }

    fn is_list(&self) -> bool {
        T::IS_LIST
    }
}
