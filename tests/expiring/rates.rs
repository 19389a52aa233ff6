use concurrent_cuckoo_filter::Tick;

use crate::filter;

/// If a tenth of the slots holds dead entries that are not swept, the table is nearly as good as one that is a
/// tenth emptier.
#[test]
fn dead_entries_are_room() {
    let relocations = |dead: bool| {
        let filter = filter(600_000, 15, 0.001);
        let slots = filter.plan().slots as u64;
        filter.advance_to(Tick::new(0));
        let (living, dying) = (slots * 80 / 100, slots / 10);
        (0..living).for_each(|key| _ = filter.insert_until(&key, Tick::new(15)).expect("there is room"));
        if dead {
            (0..dying).for_each(|key| _ = filter.insert_until(&(key | 1 << 40), Tick::new(1)).expect("there is room"));
            filter.advance_to(Tick::new(1));
            assert!(filter.len() as u64 > living + dying * 9 / 10, "nearly all of them are there still");
        }
        let before = filter.stats().relocations;
        for key in 0..slots * 14 / 100 {
            filter.insert_until(&(key | 1 << 41), Tick::new(15)).expect("there is room, and dead entries make more");
        }
        filter.stats().relocations - before
    };
    let (among_the_dead, without) = (relocations(true), relocations(false));
    assert!(without > 1000 && among_the_dead <= without * 5 / 4, "{among_the_dead} relocations, and {without}");
}
