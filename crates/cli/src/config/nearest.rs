//! What somebody may have meant.

/// The known name that is closest to this one, if one is close. Dots,
/// underscores and dashes are the same here: who knows the flag `--log-level`
/// may well write `log_level`.
pub(super) fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let wanted = folded(name);
    known
        .map(|candidate| {
            let folded = folded(&candidate);
            let last = folded.rsplit('_').next().unwrap_or_default();
            let distance = if last == wanted {
                1
            } else {
                strsim::damerau_levenshtein(&wanted, &folded)
            };
            (distance, candidate)
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= wanted.chars().count().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

fn folded(name: &str) -> String {
    name.replace(['.', '-'], "_").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_pen_are_understood_and_strangers_are_not() {
        let known = ["retain_bytes", "log.level", "max_sessions", "log.format"];
        let near = |name| nearest(name, known.iter().map(|name| (*name).to_owned()));
        assert_eq!(near("retain_byte").as_deref(), Some("retain_bytes"));
        assert_eq!(near("retian_bytes").as_deref(), Some("retain_bytes"));
        assert_eq!(near("log_level").as_deref(), Some("log.level"));
        assert_eq!(near("max-session").as_deref(), Some("max_sessions"));
        assert_eq!(near("format").as_deref(), Some("log.format"));
        assert_eq!(near("colour"), None);
        assert_eq!(near(""), None);
    }
}
