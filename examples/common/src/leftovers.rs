//! Files that a save has left behind.

use std::fs;
use std::path::Path;

/// Deletes the partial files of `path`, which a process leaves behind if it dies while it saves a filter to that path.
///
/// `Save::write_to_path` first writes a file beside the final one. Its name is that of the final one with a dot in front
/// and `.partial` at the end. Each process chooses another name, so without this a process that is killed again and again
/// fills the disk.
///
/// No other process may be saving to this path. A file that can't be deleted stays, and only takes up room.
pub fn delete_partial_files_of(path: &Path) {
    // The partial file is beside what a symbolic link leads to.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let (begin, end) = (format!(".{name}."), ".partial");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|found| found.starts_with(&begin) && found.ends_with(end)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::process;

    #[test]
    fn partial_files_of_the_path_are_deleted_and_no_others() {
        let folder = env::temp_dir().join(format!("partial-files-{}", process::id()));
        fs::create_dir(&folder).unwrap();
        let kept = [".other.1-0.partial", ".saved", ".saved.old", "saved", "saved.partial"];
        for name in [".saved.1-0.partial", ".saved.77-3.partial"].iter().chain(&kept) {
            fs::write(folder.join(name), "").unwrap();
        }
        // Also if there is no file of that name yet.
        for name in ["saved", "new"] {
            fs::write(folder.join(format!(".{name}.2-0.partial")), "").unwrap();
            delete_partial_files_of(&folder.join(name));
        }
        delete_partial_files_of(&folder.join("no such folder").join("saved"));
        let mut found: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, kept);
    }
}
