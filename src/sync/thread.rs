//! A small number that identifies the calling thread.

#[cfg(not(ccf_model = "loom"))]
#[inline]
pub(crate) fn thread_number() -> usize {
    use core::cell::Cell;
    use core::sync::atomic::{AtomicUsize, Ordering};

    static NEXT: AtomicUsize = AtomicUsize::new(1);
    std::thread_local! {
        /// 0 before the first use. Initialized by hand, because the standard library's lazy initialization takes two
        /// instructions more.
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// loom runs all its threads on one thread, and it shows their numbers only in this way.
#[cfg(ccf_model = "loom")]
pub(crate) fn thread_number() -> usize {
    let id = format!("{:?}", ::loom::thread::current().id());
    id.bytes().filter(u8::is_ascii_digit).fold(0, |number, digit| 10 * number + usize::from(digit - b'0'))
}
