use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::machine::memory::Pages;
use crate::plan::sizing::{self, LoadLimit};
use crate::table::entries::Nothing;
use crate::table::table::Table;
use crate::word::geometry::{Geometry, Item, mixed};
use crate::word::layout::{Layout, RuntimeLayout, SHAPES, Shape, WithPayload};

/// A table of a fixed size, whose words are those that `load` returns.
struct Loaded<L, F> {
    layout: L,
    geometry: Geometry,
    load: F,
}

impl<L: Layout, F: Fn(usize) -> Bucket> Graph for Loaded<L, F> {
    fn len(&self) -> usize {
        self.geometry.buckets()
    }

    fn load(&self, bucket: usize) -> Bucket {
        (self.load)(bucket)
    }

    fn prefetch(&self, _: usize) {}

    fn has_room(&self, _: usize, word: Bucket) -> bool {
        word.has_room(self.layout)
    }

    fn hops(&self, bucket: usize, mut each: impl FnMut(Entry, usize)) {
        let to = |entry| self.geometry.alternate(bucket, self.layout.fingerprint_of(entry));
        self.load(bucket).entries(self.layout).for_each(|entry| each(entry, to(entry)));
    }
}

fn find_path<L: Layout>(
    layout: L,
    geometry: Geometry,
    item: Item,
    load: impl Fn(usize) -> Bucket,
    carry_out: &mut dyn FnMut(Hop) -> bool,
) -> Outcome {
    search(&Loaded { layout, geometry, load }, [item.first, item.second], carry_out)
}

/// The distance of each bucket that can be reached from the item's two, by another kind of search: to a fixed
/// point.
fn distances<L: Layout>(layout: L, geometry: Geometry, item: Item, words: &[Bucket]) -> HashMap<usize, usize> {
    let mut distances = HashMap::from([(item.first, 0), (item.second, 0)]);
    loop {
        let mut nearer = Vec::new();
        for (&from, &distance) in distances.iter().filter(|&(&from, _)| !words[from].has_room(layout)) {
            for entry in words[from].entries(layout) {
                let to = geometry.alternate(from, layout.fingerprint_of(entry));
                if distances.get(&to).is_none_or(|&known| known > distance + 1) {
                    nearer.push((to, distance + 1));
                }
            }
        }
        if nearer.is_empty() {
            return distances;
        }
        for (to, distance) in nearer {
            distances.entry(to).and_modify(|known| *known = distance.min(*known)).or_insert(distance);
        }
    }
}

/// Fills a table of plain words to the given share, each item in a bucket of its own, and plans the insert of one
/// more.
fn check(shape: Shape, count: usize, hashes: &[u64], one: u64) {
    let (layout, geometry) = (RuntimeLayout::of(shape), Geometry::new(count));
    let mut words = vec![Bucket::default(); count];
    for &hash in hashes {
        let item = geometry.item(layout, hash);
        for bucket in [item.first, item.second] {
            if let Some(added) = words[bucket].add(layout, item.entry) {
                words[bucket] = added;
                break;
            }
        }
    }
    let item = geometry.item(layout, one);
    let distances = distances(layout, geometry, item, &words);
    let nearest = distances.iter().filter(|&(&bucket, _)| words[bucket].has_room(layout)).map(|(_, &d)| d).min();
    if nearest == Some(0) {
        // Nothing has to move.
        return;
    }

    let mut after = words.clone();
    let mut hops = 0;
    let outcome = find_path(layout, geometry, item, |bucket| words[bucket], &mut |Hop { entry, from, to }| {
        assert_eq!(geometry.alternate(from, layout.fingerprint_of(entry)), to, "a hop leads to the alternate bucket");
        after[to] = after[to].add(layout, entry).expect("each hop finds the room that the last one left");
        after[from] = after[from].remove(layout, entry).expect("what is to be moved is there");
        hops += 1;
        true
    });
    match outcome {
        Outcome::PathFound => {
            assert_eq!(Some(hops), nearest, "the shortest path");
            assert!([item.first, item.second].iter().any(|&bucket| after[bucket].has_room(layout)), "room is made");
        }
        Outcome::Nothing { .. } => assert_eq!(nearest, None, "there is no path"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 5 } else { 2_000 }))]

    #[test]
    fn a_plan_is_the_shortest_path_to_room(
        count in prop_oneof![1..8usize, 8..80usize],
        filled in 0.9..1.4f64,
        hashes in prop::collection::vec(any::<u64>(), 450),
        one in any::<u64>(),
    ) {
        let items = |slots: usize| &hashes[..((count * slots) as f64 * filled) as usize % 450];
        check(Shape::plain(2, 32), count, items(2), one);
        check(Shape::plain(8, 8), count, items(8), one);
        check(Shape::semi_sorted(3, 22), count, items(3), one);
        check(Shape::semi_sorted(5, 14), count, items(5), one);
    }
}

/// The outcome of a search for room for one item in tables of these words, and how many hops it has passed on. None of
/// them is carried out.
fn search_for_room(buckets: usize, load: impl Fn(usize) -> Bucket) -> (Outcome, usize) {
    let (layout, geometry, mut hops) = (four_slots(), Geometry::new(buckets), 0);
    let outcome = find_path(layout, geometry, geometry.item(layout, 7), load, &mut |_| {
        hops += 1;
        false
    });
    (outcome, hops)
}

fn four_slots() -> RuntimeLayout {
    RuntimeLayout::of(Shape::plain(4, 16))
}

/// A full bucket of entries that follow from this number.
fn full(number: usize) -> Bucket {
    let entries = (0..4).map(|nth| Entry(mixed((4 * number + nth) as u64) as u32 & 0xffff));
    entries.fold(Bucket::default(), |word, entry| word.add(four_slots(), entry).expect("four slots"))
}

/// In a table of no more buckets than the budget, a search finds the only bucket with room. So "full" is exact there.
#[test]
fn a_search_finds_the_only_room_in_a_table_of_its_budget() {
    for free in (0..BUDGET).step_by(if cfg!(miri) { 1000 } else { 40 }) {
        let (outcome, _) =
            search_for_room(BUDGET, |number| if number == free { Bucket::default() } else { full(number) });
        assert!(matches!(outcome, Outcome::PathFound), "bucket {free} was not found");
    }
}

#[test]
fn a_plan_is_dropped_at_the_first_hop_that_fails() {
    // All buckets are full until the search has looked at all to which one hop leads: so the path has two.
    let looks = Cell::new(0);
    let (outcome, hops) = search_for_room(1 << 20, |_| {
        looks.set(looks.get() + 1);
        if looks.get() > 11 { Bucket::default() } else { full(0) }
    });
    assert!(matches!(outcome, Outcome::PathFound));
    assert_eq!(hops, 1);
}

/// An insert that has searched a large table twice takes equal traces as proof that nothing had changed between.
#[test]
fn every_change_that_a_search_sees_changes_its_trace() {
    let Item { first, second, .. } = Geometry::new(1 << 20).item(four_slots(), 7);
    let trace = |changed: usize, lanes: u64| {
        let load = |number| Bucket(0x1234_5678_9abc_def1 ^ if number == changed { lanes } else { 0 });
        match search_for_room(1 << 20, load).0 {
            Outcome::Nothing { trace } => trace,
            Outcome::PathFound => unreachable!("no room anywhere"),
        }
    };
    let unchanged = trace(first, 0);
    assert_eq!(trace(second, 0), unchanged);
    for (changed, bit) in [first, second].into_iter().flat_map(|changed| (0..64).map(move |bit| (changed, bit))) {
        assert_ne!(trace(changed, 1 << bit), unchanged, "bit {bit} of bucket {changed}");
    }
}

#[test]
fn a_search_looks_at_no_more_buckets_than_its_budget() {
    let seen = RefCell::new(HashSet::new());
    let (outcome, _) = search_for_room(1 << 30, |number| {
        seen.borrow_mut().insert(number);
        full(number)
    });
    assert!(matches!(outcome, Outcome::Nothing { .. }));
    assert!(seen.borrow().len() <= BUDGET, "{} buckets", seen.borrow().len());
}

/// A search for room in a table of this shape, beyond the budget, in which buckets lead to few others: it examines each of
/// these once. There are as many classes as `classes`, each with a pair of its own, and their copies fill all buckets.
fn examines_each_once(layout: impl Layout, classes: usize) {
    const BUCKETS: usize = 100_000;
    let (shape, geometry) = (layout.shape(), Geometry::new(BUCKETS));
    // A chain: each class leads from the second bucket of the one before to a bucket of its own.
    let mut fingerprints = (1..1u64 << 20).map(|number| layout.fingerprint_from(mixed(number)));
    let mut chain: Vec<(usize, Bucket)> = Vec::new();
    let fill = |fingerprint| {
        let entries = (0..shape.slots).map(|_| layout.entry(fingerprint, 0));
        entries.fold(Bucket::default(), |word, entry| word.add(layout, entry).expect("it has as many slots"))
    };
    let mut from = 77;
    for _ in 0..classes {
        let new = |&fingerprint: &_| {
            let to = geometry.alternate(from, fingerprint);
            chain.iter().all(|&(bucket, _)| bucket != to) && to != from
        };
        let fingerprint = fingerprints.find(new).expect("there are enough");
        chain.push((from, fill(fingerprint)));
        from = geometry.alternate(from, fingerprint);
        // The last bucket leads back.
        if chain.len() == classes {
            chain.push((from, fill(fingerprint)));
        }
    }
    let words: HashMap<usize, Bucket> = chain.iter().copied().collect();
    let (examined, passed_on) = (RefCell::new(HashMap::<usize, usize>::new()), Cell::new(0));
    let load = |bucket| {
        *examined.borrow_mut().entry(bucket).or_default() += 1;
        *words.get(&bucket).expect("no other bucket can be reached")
    };
    let item = Item {
        entry: chain[0].1.entries(layout).next().expect("it is full"),
        first: 77,
        second: chain[1].0,
        bucket_sum: 0,
    };
    let outcome = find_path(layout, geometry, item, load, &mut |_| {
        passed_on.set(passed_on.get() + 1);
        false
    });
    assert!(matches!(outcome, Outcome::Nothing { .. }) && passed_on.get() == 0);
    let examined = examined.into_inner();
    assert_eq!(examined.len(), classes + 1, "{shape:?}");
    // Paths of up to two hops may go back and forth. After these, the search loads each bucket once to see whether it has
    // room, and once for where its entries lead.
    let (loads, slots): (usize, usize) = (examined.values().sum(), shape.slots as usize);
    let of_two_hops = 2 + 2 * slots + 2 * slots * (1 + slots);
    assert!(loads <= of_two_hops + 2 * (classes + 1), "{shape:?}: {loads} loads of {} buckets", classes + 1);
}

/// Copies of one key lead back and forth between its two buckets. Above the size of the budget, such a search used to
/// examine its whole budget.
#[test]
fn a_search_among_few_buckets_examines_each_once() {
    for shape in SHAPES.into_iter() {
        for classes in [1, 2, 5, 17, 30, 100] {
            examines_each_once(RuntimeLayout::of(shape), classes);
        }
        if let Some(shape) = shape.with_payload(4) {
            examines_each_once(WithPayload::of(shape), 1);
        }
    }
}

/// In large tables filled to the capacity, and with a quarter of the other slots taken too: the shares of the searches
/// that look at more buckets than each of the limits.
///
/// They fall geometrically: twice the number roughly squares the share. At the higher load that can be followed up to
/// the budget. At capacity, the budget ends a search much too seldom to be seen.
#[test]
#[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
fn how_far_searches_go() {
    const BUCKETS: usize = 1 << 19;
    const SEARCHES: usize = 4_000_000;
    const LIMITS: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, BUDGET - 1];
    fn row(shape: Shape, beyond: usize) {
        let (all, capacity) = (BUCKETS * shape.slots as usize, sizing::capacity_of(shape, BUCKETS, LoadLimit::NONE));
        let items = capacity + (all - capacity) * beyond / 4;
        let layout = RuntimeLayout::of(shape);
        let table = Table::new(Pages::Usual, shape, BUCKETS, Nothing).expect("a few megabytes");
        (0..items).for_each(|hash| table.insert(table.layout(), hash as u64).expect("tables take more"));
        let mut longer = [0; LIMITS.len()];
        for hash in items..items + SEARCHES {
            let (item, load) = (table.item(hash as u64), |bucket| table.load(bucket));
            let graph = Loaded { layout, geometry: Geometry::new(BUCKETS), load };
            let mut nodes = [Node::NONE; BUDGET];
            let mut search = Search::new(&mut nodes, graph.len());
            search.run(&graph, [item.first, item.second]);
            LIMITS.iter().zip(&mut longer).for_each(|(&limit, longer)| *longer += usize::from(search.len > limit));
        }
        let shares = longer.map(|longer| longer as f64 / SEARCHES as f64);
        println!("{shape:?}, {:.2}% full: longer than {LIMITS:?}: {shares:?}", items as f64 / all as f64 * 100.0);
    }
    for (shape, beyond) in SHAPES.into_iter().flat_map(|shape| [(shape, 0), (shape, 1)]) {
        row(shape, beyond);
    }
}
