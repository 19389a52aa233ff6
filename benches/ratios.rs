mod support;
use support::bench::*;
use support::subject::*;

fn probe<S: Subject>(bytes: usize, tag: &str) {
    let mut b = Filled::<S>::new(bytes);
    let n = b.slots();
    let cycles = if bytes > 10 << 20 { 0 } else { 3 };
    for _ in 0..cycles {
        b.insert_to((n as f64 * 0.9) as u64, 1);
        b.insert_to((n as f64 * 0.95) as u64, 1);
        b.remove_to(0, 1);
    }
    let n90 = (n as f64 * 0.9) as u64;
    let n95 = (n as f64 * 0.95) as u64;
    let i90 = b.insert_to(n90, 1);
    let mut s = String::new();
    if !S::FILTER { b.insert_to(1000000, 1); }
    for w in Steady::ALL {
        for t in [1, 2] {
            let mut best = f64::MAX;
            for _ in 0..5 {
                let (d, c) = b.steady(w, 2_000_000 * t, t);
                best = best.min(d.as_nanos() as f64 / c as f64);
            }
            s += &format!("{} {}t {:.2} | ", w.name(), t, 1e3 / best);
        }
    }
    let i95 = b.insert_to(n95, 1);
    let r = b.remove_to(0, 1);
    let mops = |d: std::time::Duration, c: u64| c as f64 / d.as_micros() as f64;
    let (fp, all) = b.false_positives();
    println!(
        "{tag} {} {}MiB slots {n}: i90 {:.2} i95 {:.2} rem {:.2} | {s} fp {:.5}%",
        S::NAME, b.bytes() >> 20, mops(i90, n90), mops(i95, n95 - n90), mops(r, n95), 100.0 * fp as f64 / all as f64
    );
}

fn main() {
    let args: Vec<_> = std::env::args().collect();
    let large = args.iter().any(|a| a == "--large");
    let sizes: &[usize] = if large { &[128 << 20, 192 << 20, 256 << 20] } else { &[512 << 10] };
    for &s in sizes {
        println!("--- {s}");
        if args.iter().any(|a| a == "--acf") {
            probe::<AtomicCuckooFilter>(s, "keyed");
            probe::<AtomicCuckooFilter<ahash::AHasher>>(s, "AHasher");
            continue;
        }
        probe::<Ours<Default5x14>>(s, "");
        probe::<Ours<Plain4x16>>(s, "");
        probe::<Ours<SemiSorted4x17>>(s, "");
        probe::<AtomicCuckooFilter>(s, "keyed");
        probe::<LockedScalable>(s, "");
        probe::<LockedCuckoofilter>(s, "");
        probe::<Limit>(s, "");
    }
}
