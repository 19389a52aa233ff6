//! Snapshots in files: a file is replaced as a whole, or not at all.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{LoadError, Loader, SnapshotDamage};

use crate::filters::{Filter, builder, state};
use crate::support::chain;

/// A new folder for one test. It is deleted with this value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Another process may have the same number, or have left a folder behind, so the first name that is free is taken.
    pub(crate) fn new(name: &str) -> Self {
        let all = std::env::temp_dir();
        let paths = (0..).map(|nth| all.join(format!("ccf-{name}-{}-{nth}", std::process::id())));
        let is_new = |path: &PathBuf| match fs::create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            created => created.map(|()| true).unwrap(),
        };
        Self(paths.into_iter().find(is_new).unwrap())
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn filter(keys: u64) -> Filter {
    let filter = builder().capacity(20_000).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn load(path: &Path) -> Filter {
    Filter::load_from_path(path, state(), 1 << 20).unwrap()
}

/// The variable with the folder in which the child process of a test saves.
const CHILD: &str = "CCF_TEST_SAVES_INTO";

/// A process that runs one of the ignored tests here.
fn child(program: PathBuf, test: &str, folder: &Path) -> Command {
    let mut child = Command::new(program);
    child.args(["--exact", &format!("files::{test}"), "--ignored"]).env(CHILD, folder).stdout(Stdio::null());
    child
}

#[test]
fn a_file_is_written_and_replaced_and_nothing_else_is_left() {
    let folder = Folder::new("replaced");
    let path = folder.0.join("revoked.ccf");
    for keys in [10, 20_000, 5] {
        filter(keys).save_to_path(&path).unwrap();
        assert_eq!(load(&path).len() as u64, keys);
        assert_eq!(folder.names(), ["revoked.ccf"]);
    }
    filter(7).begin_save().unwrap().position(9).write_to_path(&path).unwrap();
    let loaded = Loader::<Filter, _>::new(state(), 1 << 20).load_from_path(&path).unwrap();
    assert_eq!((loaded.filter.len(), loaded.position), (7, Some(9)));
}

/// An error of saving names the path, the reason and what to do.
fn names(error: &Error, kind: ErrorKind, path: &Path, reason: &str, advice: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    let (start, reason) = (format!("{path:?}: the snapshot could not be saved: "), reason.to_lowercase());
    assert!(text.starts_with(&start) && text.to_lowercase().contains(&reason) && text.contains(advice), "{text}");
}

#[test]
fn what_cannot_be_written_leaves_the_old_file() {
    let folder = Folder::new("kept");
    let path = folder.0.join("revoked.ccf");
    filter(10).save_to_path(&path).unwrap();
    let error = filter(20).begin_save().unwrap().attachment([0; 70_000]).write_to_path(&path).unwrap_err();
    names(&error, ErrorKind::InvalidInput, &path, "has 70000 bytes", "keep the rest outside the snapshot");
    let save = |path: &Path| filter(20).save_to_path(path).unwrap_err();
    let lost = folder.0.join("no such folder/revoked.ccf");
    names(&save(&lost), ErrorKind::NotFound, &lost, "No such file", "make its folder");
    for other in [&folder.0, Path::new("/")] {
        names(&save(other), ErrorKind::InvalidInput, other, "it is not a file", "choose another path");
    }
    let nameless = Path::new("");
    names(&save(nameless), ErrorKind::InvalidInput, nameless, "the path has no file name", "add one");
    let long = folder.0.join("n".repeat(256));
    names(&save(&long), ErrorKind::InvalidFilename, &long, "name too long", "choose a shorter name");
    assert_eq!((load(&path).len(), folder.names()), (10, vec!["revoked.ccf".to_owned()]));
}

#[test]
fn a_file_that_is_missing_or_cut_short_is_an_error_that_says_so() {
    let folder = Folder::new("missing");
    let path = folder.0.join("revoked.ccf");
    let load_from = |path: &Path| {
        let error = Filter::load_from_path(path, state(), 1 << 20).unwrap_err();
        let text = chain(&error).join(": ");
        assert!(text.contains(&format!("{path:?}")) && text.contains("the filter"), "{text}");
        assert_eq!(error.path, path);
        (LoadError::from(error), text)
    };
    let load = || load_from(&path).0;
    for (path, kind, reason) in [
        (&*path, ErrorKind::NotFound, "there is no snapshot: No such file"),
        (&folder.0, ErrorKind::IsADirectory, "it is a folder, not a file; correct this"),
        (Path::new(""), ErrorKind::InvalidInput, "the path is empty; correct this"),
    ] {
        let (error, text) = load_from(path);
        let (LoadError::NotFound(system) | LoadError::Io(system)) = &error else { panic!("{error:?}") };
        assert!(cfg!(not(unix)) || system.kind() == kind, "{text}");
        assert_eq!(matches!(error, LoadError::NotFound(_)), system.kind() == ErrorKind::NotFound, "{error:?}");
        assert!(cfg!(not(unix)) || text.contains(reason), "{text}");
    }
    filter(10).save_to_path(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1000]).unwrap();
    let error = load();
    let (len, all) = (whole.len() as u64, whole.len() as u64 - 1000);
    assert!(
        matches!(error, LoadError::Damaged(SnapshotDamage::Truncated { available, expected, .. }) if (available, expected) == (all, len)),
        "{error:?}"
    );
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    let error = load();
    assert!(
        matches!(error, LoadError::Damaged(SnapshotDamage::TrailingBytes { snapshot, available, .. }) if (snapshot, available) == (len, len + 4)),
        "{error:?}"
    );
    // A reader can continue with the bytes that follow.
    let mut file = fs::File::open(&path).unwrap();
    assert_eq!(Filter::load(&mut file, state(), 1 << 20).unwrap().len(), 10);
}

/// Like a program that decompresses a snapshot: the length is not known beforehand.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_is_read_like_a_file() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    let mut snapshot = Vec::new();
    filter(10).save(&mut snapshot).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
    let loaded = thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&snapshot).unwrap());
        load(&path)
    });
    assert_eq!(loaded.len(), 10);
}

/// A later save deletes files that a dead process has left behind, but not those that may belong to another save.
#[test]
fn abandoned_files_are_deleted() {
    let folder = Folder::new("abandoned");
    let path = folder.0.join("revoked.ccf");
    let old = std::time::SystemTime::now() - Duration::from_secs(3600);
    for (name, modified) in [
        (".revoked.ccf.0123456789abcdef.partial", Some(old)),
        (".revoked.ccf.0123456789abcde0.partial", None),
        (".other.ccf.0123456789abcdef.partial", Some(old)),
        (".revoked.ccf.20261122.partial", Some(old)),
        (".revoked.ccf.before-migration.partial", Some(old)),
        (".revoked.ccf.index.0123456789abcdef.partial", Some(old)),
        ("revoked.ccf.partial", Some(old)),
    ] {
        let file = fs::File::create(folder.0.join(name)).unwrap();
        modified.into_iter().for_each(|modified| file.set_modified(modified).unwrap());
    }
    filter(10).save_to_path(&path).unwrap();
    let left = [
        ".other.ccf.0123456789abcdef.partial",
        ".revoked.ccf.0123456789abcde0.partial",
        ".revoked.ccf.20261122.partial",
        ".revoked.ccf.before-migration.partial",
        ".revoked.ccf.index.0123456789abcdef.partial",
        "revoked.ccf",
        "revoked.ccf.partial",
    ];
    assert_eq!(folder.names(), left);
}

/// The file that is written first has a longer name than the one that it replaces.
#[test]
fn a_name_may_be_as_long_as_the_file_system_allows() {
    let folder = Folder::new("long");
    for name in ["n".repeat(229), "n".repeat(230), "n".repeat(255), "ü".repeat(127), format!("x{}", "ü".repeat(127))]
    {
        let path = folder.0.join(&name);
        for keys in [10, 20] {
            filter(keys).save_to_path(&path).unwrap();
            assert_eq!(load(&path).len() as u64, keys, "{name}");
            assert_eq!(folder.names(), std::slice::from_ref(&name));
        }
        fs::remove_file(&path).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn permissions_and_links_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = Folder::new("permissions");
    let (path, link) = (folder.0.join("revoked.ccf"), folder.0.join("current"));
    filter(10).save_to_path(&path).unwrap();
    symlink("revoked.ccf", &link).unwrap();
    for mode in [0o600, 0o640, 0o664] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        filter(20).save_to_path(&link).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // If a link leads nowhere, the file that it names is created.
    let dangling = folder.0.join("next");
    symlink("next.ccf", &dangling).unwrap();
    filter(30).save_to_path(&dangling).unwrap();
    assert!(fs::symlink_metadata(&dangling).unwrap().is_symlink());
    assert_eq!(load(&folder.0.join("next.ccf")).len(), 30);
    fs::remove_file(&dangling).unwrap();
    fs::remove_file(folder.0.join("next.ccf")).unwrap();
    assert_eq!((load(&path).len(), load(&link).len()), (20, 20));
    assert_eq!(folder.names(), ["current", "revoked.ccf"]);
}

/// Only root may change the owner of a file, so other users cannot run this test.
#[cfg(unix)]
#[test]
fn the_owner_and_the_group_are_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    let folder = Folder::new("owner");
    let path = folder.0.join("revoked.ccf");
    filter(10).save_to_path(&path).unwrap();
    let made = fs::metadata(&path).unwrap();
    if made.uid() != 0 {
        return;
    }
    for (owner, group) in [(1234, 5678), (1234, made.gid()), (0, 5678)] {
        chown(&path, Some(owner), Some(group)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
        filter(20).save_to_path(&path).unwrap();
        let saved = fs::metadata(&path).unwrap();
        assert_eq!((saved.uid(), saved.gid(), saved.mode() & 0o777), (owner, group, 0o660));
    }
}

/// A process that may not give the file to the group of the old one. Only root can start such a process.
#[cfg(unix)]
#[test]
fn who_could_not_read_the_old_file_cannot_read_the_new_one() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    const NOBODY: u32 = 65_534;
    let (folder, program) = (Folder::new("group"), Folder::new("program"));
    let path = folder.0.join("revoked.ccf");
    filter(10).save_to_path(&path).unwrap();
    if fs::metadata(&path).unwrap().uid() != 0 {
        return;
    }
    // In a place where everybody may read it. Another process copies it: as long as any process has it open for writing,
    // it does not run, and what this process has open, the child that another test forks has too.
    let copy = program.0.join("snapshots");
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    let mut child = child(copy, "saves_once", &folder.0);
    assert!(child.current_dir("/").uid(NOBODY).gid(NOBODY).status().unwrap().success());
    let saved = fs::metadata(&path).unwrap();
    assert_eq!((load(&path).len(), saved.uid(), saved.gid(), saved.mode() & 0o777), (20, NOBODY, NOBODY, 0o604));
}

#[test]
fn a_file_name_alone_is_in_the_current_folder() {
    let folder = Folder::new("current");
    let mut child = child(std::env::current_exe().unwrap(), "saves_once", Path::new(""));
    assert!(child.current_dir(&folder.0).status().unwrap().success());
    assert_eq!((load(&folder.0.join("revoked.ccf")).len(), folder.names()), (20, vec!["revoked.ccf".to_owned()]));
}

#[test]
#[ignore = "runs in the child processes of the tests above"]
fn saves_once() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    filter(20).save_to_path(Path::new(&folder).join("revoked.ccf")).unwrap();
}

#[test]
fn many_threads_may_save_to_one_path() {
    let folder = Folder::new("threads");
    let path = &folder.0.join("revoked.ccf");
    let filter = &filter(20_000);
    filter.save_to_path(path).unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || (0..10).for_each(|_| filter.save_to_path(path).unwrap()));
        }
        scope.spawn(move || (0..40).for_each(|_| assert_eq!(load(path).len(), 20_000)));
    });
    assert_eq!(folder.names(), ["revoked.ccf"]);
}

/// Another process saves again and again, and is killed at some moment. At each such moment there is a complete
/// snapshot.
#[test]
fn a_process_that_is_killed_loses_nothing() {
    let folder = Folder::new("killed");
    let path = folder.0.join("revoked.ccf");
    filter(1).save_to_path(&path).unwrap();
    let mut left_behind = 0;
    for round in 0..25u64 {
        let mut child = child(std::env::current_exe().unwrap(), "saves_for_ever", &folder.0).spawn().unwrap();
        // Waits until the child has saved for the first time, which the number of keys shows, and then a little longer.
        while load(&path).len() <= 1 && child.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(337 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let loaded = load(&path);
        assert!(loaded.len() > 1 && (0..loaded.len() as u64).all(|key| loaded.contains(&key)), "{loaded:?}");
        for name in folder.names().into_iter().filter(|name| name != "revoked.ccf") {
            assert!(name.starts_with(".revoked.ccf.") && name.ends_with(".partial"), "{name}");
            fs::remove_file(folder.0.join(name)).unwrap();
            left_behind += 1;
        }
        filter(1).save_to_path(&path).unwrap();
    }
    println!("{left_behind} files were left behind");
}

#[test]
#[ignore = "runs in the child process of the test above"]
fn saves_for_ever() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&folder).join("revoked.ccf");
    let filter = filter(2);
    for key in 2..20_000 {
        filter.insert(&key).unwrap();
        filter.save_to_path(&path).unwrap();
    }
}

/// Like a full disk: another process may write no file of more than a few KiB.
#[cfg(unix)]
#[test]
fn a_save_that_fails_leaves_the_old_file_and_nothing_else() {
    let folder = Folder::new("full");
    let path = folder.0.join("revoked.ccf");
    filter(10).save_to_path(&path).unwrap();
    let child = Command::new("sh")
        // Ignores the signal that would end the process.
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact files::saves_too_much --ignored"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, &folder.0)
        .stdout(Stdio::null())
        .status();
    assert!(child.unwrap().success());
    assert_eq!((load(&path).len(), folder.names()), (10, vec!["revoked.ccf".to_owned()]));
}

#[test]
#[ignore = "runs in the child process of the test above"]
fn saves_too_much() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&folder).join("revoked.ccf");
    let error = filter(20_000).save_to_path(&path).unwrap_err();
    names(&error, ErrorKind::FileTooLarge, &path, "File too large", "make room");
}
