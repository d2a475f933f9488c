//! A seeded random number generator.

/// An xorshift generator.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            rng.draw();
        }
        rng
    }

    /// Derives another generator.
    pub(super) fn derive(&self) -> Self {
        Rng::new(self.0.rotate_left(17))
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// Returns one of `things`.
    pub(super) fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.between(0, things.len() as u64 - 1) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers_that_cover_the_range() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        let mut seen = [false; 10];
        for _ in 0..1000 {
            let drawn = a.between(3, 12);
            assert_eq!(drawn, b.between(3, 12));
            seen[drawn as usize - 3] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
