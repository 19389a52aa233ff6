//! Writers for `save` that do more than store the bytes.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

/// A slow writer.
pub(crate) struct Slow<'a>(pub(crate) &'a mut Vec<u8>);

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        thread::sleep(Duration::from_millis(1));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Calls `act` at the `nth` write.
pub(crate) struct Acting<F> {
    pub(crate) nth: usize,
    pub(crate) act: F,
}

impl<F: FnMut() -> io::Result<()>> Write for Acting<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.nth == 0 {
            (self.act)()?;
        }
        self.nth = self.nth.wrapping_sub(1);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps the bytes that another writer gets.
pub(crate) struct Keeping<'a, W> {
    pub(crate) bytes: &'a mut Vec<u8>,
    pub(crate) writer: W,
}

impl<W: Write> Write for Keeping<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write_all(bytes)?;
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
