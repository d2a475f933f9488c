//! One row of the table of settings.

use serde_json::Value;

use super::{InForce, field::Field};

const VARIABLE_PREFIX: &str = "OUTPOST_";
/// What is shown instead of a secret.
const MASK: &str = "********";

/// Something that can be set. Its key is its name everywhere: `log.level` is
/// `level` in the table `log` of a file, the variable `OUTPOST_LOG_LEVEL` and the
/// flag `--log-level`.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// What its flag calls the value; none where there is no flag.
    pub(crate) value_name: Option<&'static str>,
    pub(crate) meaning: &'static str,
    /// Its value is shown to nobody.
    pub(crate) secret: bool,
    pub(crate) field: &'static dyn Field,
}

impl Setting {
    pub(crate) fn variable(&self) -> String {
        let name = self.key.replace('.', "_").to_uppercase();
        format!("{VARIABLE_PREFIX}{name}")
    }

    /// The name of its flag, without the dashes before it.
    pub(crate) fn flag(&self) -> Option<String> {
        self.value_name.map(|_| self.key.replace(['.', '_'], "-"))
    }

    /// What is built in.
    pub(crate) fn default(&self) -> Value {
        self.field.shown(&InForce::default())
    }

    /// The value as anybody may see it.
    pub(crate) fn masked(&self, value: &Value) -> Value {
        if self.secret {
            mask(value)
        } else {
            value.clone()
        }
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.key)
    }
}

/// Hides every value and keeps the names, so that it shows what there is.
fn mask(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::Object(members) => {
            let masked = members
                .iter()
                .map(|(name, value)| (name.clone(), mask(value)));
            Value::Object(masked.collect())
        }
        _ => Value::from(MASK),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mask_hides_values_of_every_kind_and_keeps_names() {
        assert_eq!(
            mask(&json!({"A": "secret", "B": ["x", 1, true], "C": null})),
            json!({"A": MASK, "B": [MASK, MASK, MASK], "C": null})
        );
    }
}
