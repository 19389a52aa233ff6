//! Finds out which of several sorted segments may have a key, so that a read opens one segment instead of all.

use std::collections::BTreeMap;
use std::error::Error;
use std::process;

use concurrent_cuckoo_filter::CuckooMaplet;

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}"); // what is wrong, and what to do: `main` itself would print neither
        process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    // In a store they would be files. There are 16, so the number of each takes 4 bits.
    let mut segments: Vec<BTreeMap<u64, String>> = vec![BTreeMap::new(); 16];
    let places = CuckooMaplet::<u64>::builder().capacity(100_000).value_bits(4).build()?;
    for key in 0..80_000 {
        segments[(key % 8) as usize].insert(key, format!("value {key}"));
        places.insert(&key, (key % 8) as u16)?;
    }

    // The key's segment is always among those that `values` returns. A false positive adds another one now and then.
    let mut reads = 0;
    let mut get = |segments: &[BTreeMap<u64, String>], key: u64| {
        places.values(&key).into_iter().find_map(|segment| {
            reads += 1;
            segments[usize::from(segment)].get(&key).cloned()
        })
    };
    assert!((0..160_000).all(|key| get(&segments, key).is_some() == (key < 80_000)));

    // Compaction: write segment 8, point each key at it in one step, then delete the old segments. (Beside other readers a
    // get must notice that: the page `several_places` of the guide shows how.)
    for old in 0..2 {
        for (key, value) in segments[old].clone() {
            segments[8].insert(key, value);
            assert!(places.replace(&key, old as u16, 8)?);
        }
        segments[old].clear();
    }
    assert_eq!(get(&segments, 9), Some("value 9".into()));
    println!("{reads} reads of segments for 80,001 gets of present keys and 80,000 of absent ones");
    assert!((80_001..=81_000).contains(&reads));
    Ok(())
}
