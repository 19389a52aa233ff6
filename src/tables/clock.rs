//! CONCURRENT: rotations by the caller's clock. `tables/generations.rs` has the reasoning about rotations.

use crate::sync::Ordering;
use crate::table::expiring::clock::Advance;
use crate::tables::generations::Generations;

impl Generations {
    /// Rotates as often as the caller's clock has ticked since the last tick that any thread has passed in.
    #[inline]
    pub(crate) fn advance_to(&self, tick: u64) -> Advance {
        // The last tick there is counts as the one before it: otherwise `next_tick` would overflow.
        let tick = tick.min(u64::MAX - 1);
        // Acquire, with the store: a thread that sees the tick sees the generation that came with it.
        let next_tick = self.next_tick.load(Ordering::Acquire);
        if tick >= next_tick { self.catch_up_with(tick) } else { self.not_after(tick, next_tick) }
    }

    /// The answer to a tick that is not greater than the last one.
    #[inline]
    fn not_after(&self, tick: u64, next_tick: u64) -> Advance {
        match next_tick - 1 - tick {
            0 => Advance::Current,
            by => {
                self.clock.steps_back.fetch_add(1, Ordering::Relaxed);
                Advance::Behind { by }
            }
        }
    }

    #[cold]
    fn catch_up_with(&self, tick: u64) -> Advance {
        let next_tick = tick + 1;
        let rotation = self.lock_rotation();
        // Relaxed: changed only under this lock.
        let expected = self.next_tick.load(Ordering::Relaxed);
        if next_tick <= expected {
            return self.not_after(tick, expected);
        }
        // After as many rotations as there are live generations, everything that was in has expired.
        let live = self.live_generations() as u64;
        let due = if expected == 0 { 0 } else { (next_tick - expected).min(live) };
        if due == live {
            self.clock.jumps.fetch_add(1, Ordering::Relaxed);
        }
        for _ in 1..due {
            self.begin_next().finish();
        }
        let cleaning = (due > 0).then(|| self.begin_next());
        // Release: see `advance_to`.
        self.next_tick.store(next_tick, Ordering::Release);
        // A thread that waits for this tick need not wait for the clearing.
        drop(rotation);
        if let Some(cleaning) = cleaning {
            cleaning.finish();
        }
        if expected == 0 { Advance::Origin } else { Advance::Forward { ticks: next_tick - expected } }
    }

    /// The last tick, if there was one.
    pub(crate) fn tick(&self) -> Option<u64> {
        // Acquire: see `advance_to`.
        self.next_tick.load(Ordering::Acquire).checked_sub(1)
    }

    /// Begins a new clock, which shows this tick now.
    pub(crate) fn restart_clock(&self, tick: u64) {
        let _rotation = self.rotation.lock();
        // Release: see `advance_to`. The generation is the one that every earlier tick has led to.
        self.next_tick.store(tick.min(u64::MAX - 1) + 1, Ordering::Release);
    }
}
