//! The exit code of a process on another system than ours.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// What is said of an exit that nobody has seen.
const LOST: i32 = -1;

/// An exit code, whatever number a server gives. Who waits for an exit must not wait for ever
/// because of how it is written.
struct ExitCode(i32);

impl<'de> Deserialize<'de> for ExitCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNumber)
    }
}

struct AnyNumber;

impl Visitor<'_> for AnyNumber {
    type Value = ExitCode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exit code")
    }

    fn visit_i64<E>(self, number: i64) -> Result<ExitCode, E> {
        Ok(ExitCode(i32::try_from(number).unwrap_or(LOST)))
    }

    /// Windows counts without a sign.
    fn visit_u64<E>(self, number: u64) -> Result<ExitCode, E> {
        let code = u32::try_from(number).map(u32::cast_signed);
        Ok(ExitCode(code.unwrap_or(LOST)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<ExitCode, E> {
        Ok(ExitCode(LOST))
    }
}

/// Reads an exit code.
pub(super) fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    ExitCode::deserialize(deserializer).map(|ExitCode(code)| code)
}

/// Reads an exit code, or that there is none yet.
pub(super) fn any_or_none<'de, D>(deserializer: D) -> Result<Option<i32>, D::Error>
where
    D: Deserializer<'de>,
{
    let code: Option<ExitCode> = Option::deserialize(deserializer)?;
    Ok(code.map(|ExitCode(code)| code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_one() {
        for (text, code) in [
            ("0", 0),
            ("300", 300),
            ("-1073741510", -1_073_741_510),
            ("3221225786", -1_073_741_510),
            ("4294967296", -1),
            ("-4294967296", -1),
            ("1e300", -1),
        ] {
            let read: ExitCode = serde_json::from_str(text).unwrap();
            assert_eq!(read.0, code, "{text}");
        }
        assert!(serde_json::from_str::<ExitCode>("\"0\"").is_err());
    }
}
