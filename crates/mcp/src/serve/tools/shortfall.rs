//! What a search has left out.

use crate::serve::words;

/// Why what was found isn't everything.
#[derive(Debug, Default)]
pub(super) struct Shortfall {
    /// The last bound it met.
    bound: Option<&'static str>,
    /// How many directories could not be looked into,
    pub(super) directories: u64,
    /// and how many files could not be read.
    pub(super) files: u64,
}

impl Shortfall {
    pub(super) fn because(&mut self, bound: &'static str) {
        self.bound = Some(bound);
    }

    /// The same in words; none if nothing was left out.
    pub(super) fn words(&self) -> Option<String> {
        let directories = words::count(self.directories, "directory", "directories");
        let files = words::count(self.files, "file", "files");
        let reasons = [
            self.bound.map(str::to_owned),
            (self.directories > 0).then(|| format!("{directories} could not be looked into")),
            (self.files > 0).then(|| format!("{files} could not be read")),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_told() {
        assert_eq!(Shortfall::default().words(), None);
        let mut shortfall = Shortfall {
            directories: 1,
            files: 2,
            ..Shortfall::default()
        };
        shortfall.because("it took too long");
        assert_eq!(
            shortfall.words().as_deref(),
            Some(
                "it took too long, 1 directory could not be looked into, 2 files could not be read"
            )
        );
    }
}
