//! Checks that apply to every JSON value of a message.
//!
//! One pass over the text finds syntax errors, too many values and repeated keys, without building
//! anything but the list of member names in the params. Later code may rely on well-formed text and
//! bounded trees.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::envelope::Text;
use crate::known_members::PresentMembers;
use crate::malformed::{MAX_JSON_VALUES, Malformed};

/// The number of keys of an object that are compared linearly, without allocating. More keys are
/// hashed, to avoid quadratic cost.
const COMPARED_KEYS: usize = 16;

/// Checks that `text` is one JSON value with at most [`MAX_JSON_VALUES`] values and no repeated keys,
/// and returns the names of the members in its `params`. serde_json limits the nesting to 128.
pub(crate) fn vet(text: &str) -> Result<PresentMembers<'_>, Malformed> {
    let mut vetting = Vetting {
        values_left: MAX_JSON_VALUES,
        keys: Vec::new(),
        depth: 0,
        in_params: false,
        members: PresentMembers::default(),
        violation: None,
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let outcome = Value(&mut vetting)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    match (vetting.violation, outcome) {
        (Some(violation), _) => Err(violation),
        (None, Err(error)) => Err(Malformed::NotJson(error)),
        (None, Ok(())) => Ok(vetting.members),
    }
}

/// The state of the check.
struct Vetting<'de> {
    values_left: usize,
    /// The keys of all open objects, innermost last. One stack for all takes one allocation per
    /// message instead of one per object.
    keys: Vec<Cow<'de, str>>,
    /// The number of open objects.
    depth: usize,
    /// Whether the value of the outermost `params` is being walked.
    in_params: bool,
    members: PresentMembers<'de>,
    /// The violated rule. Serde errors carry only text, so the reason is kept here while the error
    /// unwinds.
    violation: Option<Malformed>,
}

impl<'de> Vetting<'de> {
    fn reject<E: Error>(&mut self, violation: Malformed) -> E {
        self.violation = Some(violation);
        E::custom("rejected")
    }

    fn count_value<E: Error>(&mut self) -> Result<(), E> {
        match self.values_left.checked_sub(1) {
            Some(left) => self.values_left = left,
            None => return Err(self.reject(Malformed::TooManyValues)),
        }
        Ok(())
    }

    /// Checks one object whose keys start at `base` on the stack. Escapes in keys are resolved, so that
    /// `"a"` and `"\u0061"` are equal.
    fn walk_object<A: MapAccess<'de>>(&mut self, base: usize, map: &mut A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            let seen = &self.keys[base..];
            if seen.len() == COMPARED_KEYS {
                let mut hashed: HashSet<Cow<'de, str>> = self.keys.drain(base..).collect();
                return self.walk_wide_object(&mut hashed, key, map);
            }
            if seen.contains(&key) {
                return Err(self.reject(Malformed::repeated_key(&key)));
            }
            self.keys.push(key.clone());
            self.walk_member(&key, map)?;
        }
        Ok(())
    }

    fn walk_member<A: MapAccess<'de>>(
        &mut self,
        key: &Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if self.in_params {
            // One object is around the params.
            self.members.push(self.depth - 1, key.clone());
            return map.next_value_seed(Value(self));
        }
        self.in_params = self.depth == 1 && key == "params";
        let walked = map.next_value_seed(Value(self));
        self.in_params = false;
        walked
    }

    /// Continues with hashed keys, at the value of `key`.
    fn walk_wide_object<A: MapAccess<'de>>(
        &mut self,
        seen: &mut HashSet<Cow<'de, str>>,
        key: Cow<'de, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let mut key = key;
        loop {
            if seen.contains(&key) {
                return Err(self.reject(Malformed::repeated_key(&key)));
            }
            seen.insert(key.clone());
            self.walk_member(&key, map)?;
            match map.next_key()? {
                Some(Text(next)) => key = next,
                None => return Ok(()),
            }
        }
    }
}

/// Checks one value and everything in it.
struct Value<'v, 'de>(&'v mut Vetting<'de>);

impl<'de> DeserializeSeed<'de> for Value<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.0.count_value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Value(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let base = self.0.keys.len();
        self.0.depth += 1;
        let outcome = self.0.walk_object(base, &mut map);
        self.0.depth -= 1;
        self.0.keys.truncate(base);
        outcome
    }
}
