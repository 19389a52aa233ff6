//! Both engines do the same. The quick tests are only as good as their engine is like the real one.

use std::time::Duration;

use super::subject::*;
use crate::change::{Proposal, Tick};
use crate::log::{Appended, MessageId};

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        // Vigna's generator "xorshift64*".
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }

    fn proposal(&mut self, now: Tick) -> Proposal {
        let number = self.below(2 * CAPACITY);
        match self.below(4) {
            0 => restore(number),
            _ => revoke(number, now + self.below(u64::from(LONGEST) + 20) as Tick / (1 + self.below(20) as Tick)),
        }
    }
}

#[test]
fn the_engine_in_memory_does_what_the_real_one_does() {
    let subjects = subjects(&[], Duration::from_secs(1 << 24));
    let heads: Vec<_> = subjects.iter().map(|subject| agree(&**subject)).collect();
    let (mut numbers, mut time) = (Numbers(7), start());
    let mut sent: Vec<(Vec<_>, MessageId)> = Vec::new();
    for round in 0..600 {
        // The clock stays, goes on, jumps, or goes back.
        match numbers.below(20) {
            0 => time += RESOLUTION * 1000 * (1 + numbers.below(30)),
            1 => time -= RESOLUTION * 1000 * numbers.below(3),
            2..6 => time += RESOLUTION * 1000,
            _ => {}
        }
        let now = (time / 1000 / RESOLUTION) as Tick;
        let (proposals, id) = match numbers.below(10) {
            0 if !sent.is_empty() => sent[numbers.below(sent.len() as u64) as usize].clone(),
            _ => ((0..numbers.below(5)).map(|_| numbers.proposal(now)).collect(), fresh()),
        };
        sent.push((proposals.clone(), id));
        let answers: Vec<_> = subjects
            .iter()
            .zip(&heads)
            .map(|(subject, head)| answer(&**subject, *head, time, id, &proposals))
            .collect();
        for answer in &answers {
            assert_eq!(*answer, answers[0], "round {round}: {proposals:?}");
        }
    }
    let logs: Vec<_> = subjects.iter().zip(&heads).map(|(subject, head)| all(subject.log(), head.epoch)).collect();
    assert!(logs[0].len() > 300, "{}", logs[0].len());
    for log in &logs {
        assert_eq!(*log, logs[0]);
    }
}

/// What an engine answers to this message: its answer, where the log ends, and until when each token is revoked.
fn answer(
    subject: &dyn Subject,
    head: crate::log::Head,
    time: u64,
    id: MessageId,
    proposals: &[Proposal],
) -> (Appended, u64, Tick, Vec<Option<u64>>) {
    subject.set_time(time);
    let appended = subject.log().append(head.place(), id, proposals).unwrap();
    let end = subject.log().head(head.epoch).unwrap();
    let until = |proposal: &Proposal| {
        let (Proposal::Revoke { token, .. } | Proposal::Restore { token, .. }) = *proposal;
        subject.log().revoked_until(head.place(), token).unwrap()
    };
    (appended, end.position, end.tick, proposals.iter().map(until).collect())
}
