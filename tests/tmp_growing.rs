use concurrent_cuckoo_filter::*;
use std::sync::atomic::{AtomicBool, Ordering::*};
#[test]
fn basic() {
    let f = GrowableCuckooFilter::<u64>::with_capacity(100);
    for k in 0..3_000_000u64 {
        f.insert(&k).unwrap_or_else(|e| panic!("{k}: {e} {f:?}"));
        if k.is_power_of_two() || k % 500_000 == 0 {
            eprintln!(
                "{k}: {:?} bits/key {:.2} load {:.3}",
                f,
                8.0 * f.memory_usage() as f64 / (k + 1) as f64,
                f.load_factor()
            );
        }
    }
    for k in 0..3_000_000u64 {
        assert!(f.contains(&k), "{k}");
    }
    let keys: Vec<u64> = (0..3_000_000).collect();
    let mut out = vec![];
    f.contains_batch(&keys, &mut out);
    assert!(out.iter().all(|&x| x));
    let fp = (10_000_000..12_000_000u64).filter(|k| f.contains(k)).count();
    eprintln!("fp {} expected {}", fp as f64 / 2e6, f.false_positive_rate());
    for k in 1000..3_000_000u64 {
        assert!(f.remove(&k), "{k}");
    }
    let t = std::time::Instant::now();
    f.shrink_to_fit();
    eprintln!("{:?} {:?} {:?}", t.elapsed(), f, f.stats());
    for k in 0..1000u64 {
        assert!(f.contains(&k), "{k}");
        assert_eq!(f.count(&k), 1);
    }
}
#[test]
fn races() {
    let f = GrowableCuckooFilter::<u64>::with_capacity(100);
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        for t in 0..3u64 {
            let (f, stop) = (&f, &stop);
            s.spawn(move || {
                let mut rng = t + 1;
                let mut own: Vec<u64> = vec![];
                let mut id = t << 40;
                let mut grow = true;
                while !stop.load(Relaxed) {
                    rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let r = (rng >> 40) % 8;
                    if own.len() > 4000 {
                        grow = false
                    }
                    if own.len() < 40 {
                        grow = true
                    }
                    if r < if grow { 4 } else { 1 } {
                        id += 1;
                        f.insert(&id).unwrap();
                        own.push(id)
                    } else if r < 5 {
                        if !own.is_empty() {
                            let k = own.swap_remove((rng >> 20) as usize % own.len());
                            assert!(f.remove(&k), "remove")
                        }
                    } else if !own.is_empty() {
                        let k = own[(rng >> 20) as usize % own.len()];
                        assert!(f.contains(&k), "contains")
                    }
                }
                for k in &own {
                    assert!(f.contains(k));
                }
            });
        }
        let (f, stop) = (&f, &stop);
        s.spawn(move || {
            let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
            let mut n = 0;
            while std::time::Instant::now() < end {
                f.shrink_to_fit();
                n += 1;
                if n % 50 == 0 {
                    let mut v = vec![];
                    f.save(&mut v).unwrap();
                }
                std::thread::yield_now();
            }
            stop.store(true, Relaxed);
        });
    });
    eprintln!("{:?}", f.stats());
}
