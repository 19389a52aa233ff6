//! Inserts into a table in which a tenth of the slots is dead, and into one that is a tenth emptier.

use concurrent_cuckoo_filter::{Advance, Tick};

use crate::subjects::{Expiring, expiring};
use crate::support::clock::own_time;
use crate::support::keys::key;
use crate::support::report::{Spread, speed};
use crate::{Clocked, LONGEST, NOW};

/// How many inserts are timed, or counted, at a time.
const SLICE: u64 = 4096;

/// The number of parts into which the way to the capacity is divided.
const PARTS: u64 = 5;

/// The end of an entry that outlives the next tick.
fn outlives(number: u64) -> u64 {
    NOW + 2 + number % (LONGEST - 1)
}

/// What inserts into one of the tables cost.
#[derive(Default)]
struct Cost {
    times: Vec<f64>,
    counted: u64,
    relocations: u64,
    relocating: u64,
}

impl Cost {
    /// Each slice is timed or counted, because counting takes longer than inserting.
    fn add(&mut self, filter: &Expiring, new: &[Clocked], timed: bool) {
        let insert = |(key, end): &Clocked| _ = filter.insert_until(key, Tick::new(*end)).expect("room");
        if timed {
            let start = own_time();
            new.iter().for_each(insert);
            self.times.push((own_time() - start) as f64 / new.len() as f64);
            return;
        }
        for new in new {
            let before = filter.stats().relocations;
            insert(new);
            let relocations = filter.stats().relocations - before;
            self.relocations += relocations;
            self.relocating += u64::from(relocations > 0);
        }
        self.counted += new.len() as u64;
    }

    fn cells(&self) -> [String; 3] {
        let per_insert = |number: u64| number as f64 / self.counted as f64;
        [
            format!("{:.4}", per_insert(self.relocations)),
            format!("{:.2} %", per_insert(self.relocating) * 100.0),
            format!("{:.2}", speed(&self.times)),
        ]
    }
}

pub(crate) fn table(keys: u64, test: bool) -> Vec<Vec<String>> {
    eprintln!("a tenth is dead");
    let tables = [expiring(keys as usize, 0.001, LONGEST), expiring(keys as usize, 0.001, LONGEST)];
    let [dead, emptier] = &tables;
    let (slots, keys) = (dead.plan().slots as u64, dead.capacity() as u64);
    let dying = slots / 10;
    tables.iter().for_each(|filter| assert_eq!(filter.advance_to(Tick::new(NOW)), Advance::Origin));
    for number in 0..keys {
        // This many die, evenly spread.
        let dies = (number + 1) * dying / keys > number * dying / keys;
        let key = key(number);
        dead.insert_until(&key, Tick::new(if dies { NOW + 1 } else { outlives(number) })).expect("room");
        if !dies {
            emptier.insert_until(&key, Tick::new(outlives(number))).expect("room");
        }
    }
    tables.iter().for_each(|filter| assert_eq!(filter.advance_to(Tick::new(NOW + 1)), Advance::Forward { ticks: 1 }));
    let swept = dead.stats().expiry.unwrap().expired as f64 / dying as f64;
    // A small table is swept at once.
    assert!(test || swept < 0.05, "{swept} of the dead were swept");

    let head = ["live, of the slots", "relocations an insert", "with a tenth dead", "ratio"];
    let head = head.into_iter().chain(["inserts that relocate", "with a tenth dead"]);
    let head = head.chain(["million inserts a second", "with a tenth dead", "ratio"]);
    let mut rows = vec![head.map(String::from).collect::<Vec<_>>()];
    let live = keys - dying;
    let mut costs: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let mut next = keys;
    for part in 1..=PARTS {
        let [mut of_dead, mut of_emptier] = [Cost::default(), Cost::default()];
        let until = keys + dying * part / PARTS;
        let mut slices = 0;
        while next < until || slices < 2 {
            let until = (next + SLICE.min(dying / 32)).min(until.max(next + 2));
            let new: Vec<Clocked> = (next..until).map(|number| (key(number), outlives(number))).collect();
            // The filter that comes second finds the keys in the cache. So the two alternate.
            let timed = slices % 2 == 0;
            if slices % 4 < 2 {
                of_emptier.add(emptier, &new, timed);
                of_dead.add(dead, &new, timed);
            } else {
                of_dead.add(dead, &new, timed);
                of_emptier.add(emptier, &new, timed);
            }
            (next, slices) = (until, slices + 1);
        }
        let relocations = of_dead.relocations as f64 / of_emptier.relocations as f64;
        let ratios = of_dead.times.iter().zip(&of_emptier.times).map(|(dead, emptier)| emptier / dead);
        let ([empty_each, empty_share, empty_speed], [dead_each, dead_share, dead_speed]) =
            (of_emptier.cells(), of_dead.cells());
        let load = |part: u64| (live + dying * part / PARTS) as f64 / slots as f64 * 100.0;
        rows.push(vec![
            format!("{:.1}–{:.1} %", load(part - 1), load(part)),
            empty_each,
            dead_each,
            format!("{relocations:.2}"),
            empty_share,
            dead_share,
            empty_speed,
            dead_speed,
            Spread::of(ratios).show(),
        ]);
        costs[0].push(of_dead.relocations as f64);
        costs[1].push(of_emptier.relocations as f64);
    }
    let [of_dead, of_emptier] = costs.map(|costs| costs.iter().sum::<f64>());
    let mut last = vec![String::new(); rows[0].len()];
    (last[0], last[3]) = ("all".into(), format!("{:.2}", of_dead / of_emptier));
    rows.push(last);
    rows
}
