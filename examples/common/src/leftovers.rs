//! Files that an interrupted save leaves behind.

use std::fs;
use std::path::Path;

/// Deletes the partial files of `path`: those of a process that died while it saved a filter to that path.
///
/// `Save::write_to_path` first writes a file beside the final one, called `.NAME.DIGITS.partial`. A later save
/// deletes such a file if nobody has written to it for ten minutes. A process that is the only one to save to the
/// path need not wait for that: it can delete them when it starts.
///
/// No other process may be saving to this path. A file that can't be deleted stays, and only takes up room.
pub fn delete_partial_files_of(path: &Path) {
    // The partial file is beside the target of a symbolic link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let (begin, end) = (format!(".{name}."), ".partial");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix(&begin)?.strip_suffix(end));
        if digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_files_of_the_path_are_deleted_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let kept = [
            ".other.0123456789abcdef.partial",
            ".saved",
            ".saved.download.partial",
            ".saved.old",
            "saved",
            "saved.partial",
        ];
        for name in [".saved.0123456789abcdef.partial", ".saved.fedcba9876543210.partial"].iter().chain(&kept) {
            fs::write(folder.join(name), "").unwrap();
        }
        // Also if no file of that name exists yet.
        for name in ["saved", "new"] {
            fs::write(folder.join(format!(".{name}.00000000000000aa.partial")), "").unwrap();
            delete_partial_files_of(&folder.join(name));
        }
        delete_partial_files_of(&folder.join("no such folder").join("saved"));
        let mut found: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        assert_eq!(found, kept);
    }
}
