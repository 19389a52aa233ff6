use concurrent_cuckoo_filter::*;
use std::hint::black_box;
use std::time::Instant;
fn key(n: u64) -> u64 {
    let z = (n ^ n >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d049bb133111eb);
    z ^ z >> 31
}
trait F {
    fn c(&self, k: &u64) -> bool;
    fn b(&self, k: &[u64], o: &mut Vec<bool>);
    fn i(&self, k: &u64);
    fn r(&self, k: &u64) -> bool;
}
impl F for ConcurrentCuckooFilter<u64> {
    fn c(&self, k: &u64) -> bool {
        self.contains(k)
    }
    fn b(&self, k: &[u64], o: &mut Vec<bool>) {
        self.contains_batch(k, o)
    }
    fn i(&self, k: &u64) {
        self.insert(k).unwrap()
    }
    fn r(&self, k: &u64) -> bool {
        self.remove(k)
    }
}
impl F for GrowableCuckooFilter<u64> {
    fn c(&self, k: &u64) -> bool {
        self.contains(k)
    }
    fn b(&self, k: &[u64], o: &mut Vec<bool>) {
        self.contains_batch(k, o)
    }
    fn i(&self, k: &u64) {
        self.insert(k).unwrap()
    }
    fn r(&self, k: &u64) -> bool {
        self.remove(k)
    }
}
fn single<X: F>(f: &X, ks: &[u64]) -> usize {
    ks.iter().filter(|k| f.c(black_box(k))).count()
}
fn batch<X: F>(f: &X, ks: &[u64], o: &mut Vec<bool>) -> usize {
    o.clear();
    for c in ks.chunks(1024) {
        f.b(c, o)
    }
    o.iter().filter(|x| **x).count()
}
#[test]
fn speed() {
    for (name, buckets, rounds) in [("L2 400K", 50_000usize, 300), ("64M", 8_000_000, 25)] {
        let keys = (buckets as f64 * 5.0 * 0.9) as u64;
        let fx = ConcurrentCuckooFilter::<u64>::with_capacity((buckets as f64 * 5.0 * 0.965) as usize);
        for k in 0..keys {
            fx.i(&key(k))
        }
        // largest = 2^l buckets of 5 slots
        let l = buckets.ilog2();
        let mk = |max_buckets: u64, at: f64| {
            let max = (max_buckets as f64 * 5.0 * 0.96) as usize;
            let f = GrowableCuckooFilter::<u64>::builder().capacity(1000).max_capacity(max).build().unwrap();
            let mut n = 0u64;
            while (f.memory_usage() as f64) < at * 8.0 {
                f.i(&key(n));
                n += 1
            }
            (f, n)
        };
        let gs = [
            ("whole 5", mk(1 << l, (1u64 << l) as f64 * 0.99)),
            ("4/5 mixed", mk(1 << (l + 1), (1u64 << l) as f64 * 1.4)),
            ("4 slots 1/4", mk(1 << (l + 2), (1u64 << l) as f64 * 1.3)),
            ("3 slots", mk(1 << (l + 5), (1u64 << l) as f64 * 1.3)),
        ];
        for (gname, (g, n)) in &gs {
            eprint!(
                "{name} {gname:12} {} keys load {:.3} bits {:.1}: ",
                n,
                g.load_factor(),
                g.memory_usage() as f64 * 8.0 / *n as f64
            );
            for (hit, what) in [(true, "hit"), (false, "miss")] {
                let q = 20_000u64;
                let ks = |n: u64| {
                    (0..q)
                        .map(|i| if hit { key(key(i + 7) % n) } else { key(key(i + 7) | 1 << 60) })
                        .collect::<Vec<_>>()
                };
                let (kf, kg) = (ks(keys), ks(*n));
                let mut t = [f64::MAX; 4];
                let mut o = Vec::with_capacity(q as usize);
                let mut c = [0; 4];
                for r in 0..rounds {
                    let (kf, kg): (Vec<u64>, Vec<u64>) = if buckets > 1 << 20 {
                        let s = r as u64 * q;
                        (
                            (0..q)
                                .map(|i| if hit { key(key(i + s) % keys) } else { key(key(i + s) | 1 << 60) })
                                .collect(),
                            (0..q)
                                .map(|i| if hit { key(key(i + s) % *n) } else { key(key(i + s) | 1 << 60) })
                                .collect(),
                        )
                    } else {
                        (kf.clone(), kg.clone())
                    };
                    let s = Instant::now();
                    c[0] = single(&fx, &kf);
                    t[0] = t[0].min(s.elapsed().as_secs_f64());
                    let s = Instant::now();
                    c[1] = single(g, &kg);
                    t[1] = t[1].min(s.elapsed().as_secs_f64());
                    let s = Instant::now();
                    c[2] = batch(&fx, &kf, &mut o);
                    t[2] = t[2].min(s.elapsed().as_secs_f64());
                    let s = Instant::now();
                    c[3] = batch(g, &kg, &mut o);
                    t[3] = t[3].min(s.elapsed().as_secs_f64());
                }
                eprint!(
                    "{what} {:.1}/{:.1} x{:.2}  batch {:.1}/{:.1} x{:.2} | ",
                    t[0] * 1e9 / q as f64,
                    t[1] * 1e9 / q as f64,
                    t[1] / t[0],
                    t[2] * 1e9 / q as f64,
                    t[3] * 1e9 / q as f64,
                    t[3] / t[2]
                );
                if hit {
                    assert!(c.iter().all(|&c| c as u64 == q))
                }
            }
            eprintln!();
        }
        // inserts into a growing filter, per key, with removal
        let n = keys.min(5_000_000);
        let mut t = [f64::MAX; 4];
        for _ in 0..if buckets > 1 << 20 { 1 } else { 20 } {
            let g = GrowableCuckooFilter::<u64>::builder().build().unwrap();
            let s = Instant::now();
            for k in 0..n {
                g.i(&key(k))
            }
            t[0] = t[0].min(s.elapsed().as_secs_f64());
            let cap = g.capacity();
            let f = ConcurrentCuckooFilter::<u64>::with_capacity(cap);
            let s = Instant::now();
            for k in 0..n {
                f.i(&key(k))
            }
            t[1] = t[1].min(s.elapsed().as_secs_f64());
            let s = Instant::now();
            for k in 0..n {
                assert!(g.r(&key(k)))
            }
            t[2] = t[2].min(s.elapsed().as_secs_f64());
            let s = Instant::now();
            for k in 0..n {
                assert!(f.r(&key(k)))
            }
            t[3] = t[3].min(s.elapsed().as_secs_f64());
            let s = Instant::now();
            for k in 0..n {
                g.i(&key(k))
            }
            g.reserve(1).unwrap();
            let full = s.elapsed().as_secs_f64();
            let _ = full;
        }
        eprintln!(
            "{name}: insert growable {:.1} fixed {:.1} x{:.2}; remove {:.1} {:.1} x{:.2}",
            t[0] * 1e9 / n as f64,
            t[1] * 1e9 / n as f64,
            t[0] / t[1],
            t[2] * 1e9 / n as f64,
            t[3] * 1e9 / n as f64,
            t[2] / t[3]
        );
    }
}
#[test]
fn prof_insert() {
    let g = GrowableCuckooFilter::<u64>::builder().build().unwrap();
    for k in 0..100_000u64 {
        g.i(&key(k))
    }
    eprintln!("{:?}", g.stats().relocations);
}
#[test]
fn prof_mixed() {
    let g = GrowableCuckooFilter::<u64>::builder().max_capacity(400_000).build().unwrap();
    for k in 0..100_000u64 {
        g.i(&key(k))
    }
    let mut n = 0;
    for k in 0..100_000u64 {
        n += g.c(&key(k)) as u32
    }
    eprintln!("{n} {g:?}");
}
