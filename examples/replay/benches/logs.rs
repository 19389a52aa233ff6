//! Measures this log and `quinn`'s own: tokens checked and recorded a second, on one thread and on two.
//!
//! ```text
//! cargo bench -p replay --bench logs
//! cargo bench -p replay --bench logs -- 10000000
//! ```
//!
//! The number is the tokens of one lifetime, a million by default. Each thousandth token is the one before it, once more.
//! Each log lives through two lifetimes, the second of which is measured, with what it does to forget expired tokens.

use std::f64::consts::LOG2_E;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use quinn::{BloomTokenLog, TokenLog, TokenReuseError};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use replay::{UsedOnce, unix_seconds};

const DAYS: u32 = 14;
const DAY: Duration = Duration::from_secs(86_400);
/// The rate of wrongly refused tokens that the log is built for.
const RATE: f64 = 0.001;
/// A figure is the median of so many rounds.
const ROUNDS: usize = 5;
/// Every so many tokens, one comes again.
const REPLAY: usize = 1000;

/// A token that was issued after now makes the log believe that now is then: the clock runs ahead with the tokens. The
/// log still reads the system's clock for each token, as a server's does.
struct Ahead(UsedOnce<u128>);

impl TokenLog for Ahead {
    fn check_and_insert(&self, nonce: u128, issued: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        let issued = unix_seconds(issued);
        self.0.try_use(&nonce, issued, unix_seconds(SystemTime::now()).max(issued)).map_err(|_| TokenReuseError)
    }
}

type NewLog<'a> = &'a dyn Fn() -> Box<dyn TokenLog>;

fn main() {
    let tokens = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let ours = || UsedOnce::new(DAYS * DAY, tokens, RATE).expect("a log of so many tokens");
    let our_bytes = ours().filter().stats().memory_usage;
    // Two Bloom filters, of which each has room for the tokens of a lifetime: log2(e) * log2(1 / rate) bits a token.
    let same_rate = (2.0 * LOG2_E * -RATE.log2() * tokens as f64 / 8.0) as usize;
    let quinns = |bytes| BloomTokenLog::new_expected_items(bytes, tokens as u64);
    let logs: [(&str, usize, NewLog<'_>); 4] = [
        ("this log", our_bytes, &|| Box::new(Ahead(ours()))),
        ("quinn's, same memory", our_bytes, &|| Box::new(quinns(our_bytes))),
        ("quinn's, built for 0.1%", same_rate, &|| Box::new(quinns(same_rate))),
        ("quinn's, default", 20 << 20, &|| Box::new(BloomTokenLog::default())),
    ];

    println!("{tokens} tokens in a lifetime, million a second\n");
    println!("| log | MB | new tokens refused | 1 thread | 2 threads |\n|---|---|---|---|---|");
    let (mut speeds, mut refused): ([[Vec<f64>; 2]; 4], [usize; 4]) = Default::default();
    for _ in 0..ROUNDS {
        for threads in [1, 2] {
            for (nth, (_, _, new_log)) in logs.iter().enumerate() {
                let (speed, refused_now) = round(&*new_log(), threads, tokens);
                speeds[nth][threads - 1].push(speed);
                refused[nth] += refused_now;
            }
        }
    }
    for (((name, bytes, _), speeds), refused) in logs.iter().zip(speeds).zip(refused) {
        let percent = 100.0 * refused as f64 / (2 * ROUNDS * tokens) as f64;
        let [one, two] = speeds.map(|mut speeds| {
            speeds.sort_by(f64::total_cmp);
            speeds[ROUNDS / 2] / 1e6
        });
        println!("| {name} | {:.1} | {percent:.3}% | {one:.2} | {two:.2} |", *bytes as f64 / 1e6);
    }
}

/// Two lifetimes of a new log. The threads meet at the beginning of each day. Returns how many tokens it has taken in a
/// second, and how many new ones it has refused.
fn round(log: &dyn TokenLog, threads: usize, tokens: usize) -> (f64, usize) {
    let (day, start) = (Barrier::new(threads), SystemTime::now());
    let of_a_day = tokens / DAYS as usize / threads;
    let run = |seed| {
        let mut random = SmallRng::seed_from_u64(seed);
        let (mut refused, mut begin) = (0, Instant::now());
        for today in 0..2 * DAYS {
            day.wait();
            if today == DAYS {
                (refused, begin) = (0, Instant::now());
            }
            let check = |nonce| log.check_and_insert(nonce, start + today * DAY, DAYS * DAY).is_ok();
            let mut last = 0;
            for i in 1..=of_a_day {
                if i % REPLAY == 0 {
                    assert!(!check(last), "a token was used twice");
                } else {
                    last = random.random();
                    refused += usize::from(!check(last));
                }
            }
        }
        (begin.elapsed(), refused)
    };
    let ends: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|seed| scope.spawn(move || run(seed as u64))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread has panicked")).collect()
    });
    let slowest = ends.iter().map(|(time, _)| time.as_secs_f64()).fold(0.0, f64::max);
    let checked = of_a_day * threads * DAYS as usize;
    (checked as f64 / slowest, ends.iter().map(|(_, refused)| refused).sum())
}
