//! Lenient parsing of exit codes from other systems.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// The code of an unknown exit.
const UNKNOWN: i32 = -1;

/// An exit code from any number. Rejecting a code would leave a client waiting forever for the exit.
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
        Ok(ExitCode(i32::try_from(number).unwrap_or(UNKNOWN)))
    }

    /// Exit codes on Windows are unsigned.
    fn visit_u64<E>(self, number: u64) -> Result<ExitCode, E> {
        let code = u32::try_from(number).map(u32::cast_signed);
        Ok(ExitCode(code.unwrap_or(UNKNOWN)))
    }

    fn visit_f64<E>(self, _: f64) -> Result<ExitCode, E> {
        Ok(ExitCode(UNKNOWN))
    }
}

/// Reads an exit code.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    ExitCode::deserialize(deserializer).map(|ExitCode(code)| code)
}

/// Reads an optional exit code.
pub(super) fn deserialize_option<'de, D>(deserializer: D) -> Result<Option<i32>, D::Error>
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
    fn any_number_is_an_exit_code() {
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
