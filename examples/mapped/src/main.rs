//! A publisher and two readers, each a process. The readers map the publisher's file, which it replaces nine times.
//!
//! `mapped` runs all three. `mapped read PATH` is a reader.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs, process, thread};

use concurrent_cuckoo_filter::StableHashBuilder;
use mapped::{Blocked, Mapped, SCHEMA};

/// How many files there are, and how many keys each has more than the one before.
const FILES: u64 = 10;
const MORE: u64 = 2_000;

/// In earnest, from the configuration.
const KEY: [u8; 16] = *b"sixteen secrets!";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => {
            let folder = env::temp_dir().join(format!("mapped-{}", process::id()));
            fs::create_dir_all(&folder)?;
            let result = publish(&folder.join("blocked.ccf"));
            fs::remove_dir_all(&folder)?;
            result
        }
        [command, path] if command == "read" => read(Path::new(path)),
        _ => Err("usage: mapped [read PATH]".into()),
    }
}

/// The keys that are in the file with this number.
fn keys(file: u64) -> impl Iterator<Item = String> {
    (0..file * MORE).map(|number| format!("{number}-mail.example"))
}

fn publish(path: &Path) -> Result<(), Box<dyn Error>> {
    let builder = Blocked::builder_with_hasher(StableHashBuilder::with_key(KEY)).schema(SCHEMA);
    let blocked = builder.capacity((FILES * MORE) as usize).build()?;
    let mut readers = Vec::new();
    for file in 1..=FILES {
        keys(file).skip(((file - 1) * MORE) as usize).try_for_each(|key| blocked.insert(key.as_str()))?;
        // The file has the old snapshot or the new one, at every moment.
        blocked.begin_save()?.position(file).write_to_path(path)?;
        if file == 1 {
            for _ in 0..2 {
                readers.push(Command::new(env::current_exe()?).arg("read").arg(path).spawn()?);
            }
        }
    }
    for mut reader in readers {
        if !reader.wait()?.success() {
            return Err("a reader has failed".into());
        }
    }
    println!("published {FILES} files of {} keys more each", MORE);
    Ok(())
}

fn read(path: &Path) -> Result<(), Box<dyn Error>> {
    let mapped = Mapped::open(path, StableHashBuilder::with_key(KEY))?;
    let mut seen = BTreeSet::new();
    loop {
        let view = mapped.current();
        let file = view.info().position.ok_or("the publisher states a position")?;
        // The view is of one file, whatever has that name by now.
        if let Some(missed) = keys(file).find(|key| !view.contains(key.as_str())) {
            return Err(format!("{missed} is missed in file {file}").into());
        }
        seen.insert(file);
        if file == FILES {
            break;
        }
        while !mapped.reload()? {
            thread::yield_now();
        }
    }
    println!("process {}: read files {seen:?}, missed nothing", process::id());
    Ok(())
}
