//! Numbers that can be drawn again.

/// A small generator (xorshift), seeded once.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            dice.draw();
        }
        dice
    }

    /// Another one that depends on this.
    pub(super) fn other(&self) -> Self {
        Dice::new(self.0.rotate_left(17))
    }

    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// One of these.
    pub(super) fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.between(0, things.len() as u64 - 1) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_all_of_it() {
        let (mut a, mut b) = (Dice::new(7), Dice::new(7));
        let mut seen = [false; 10];
        for _ in 0..1000 {
            let drawn = a.between(3, 12);
            assert_eq!(drawn, b.between(3, 12));
            seen[drawn as usize - 3] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
