//! Ethereum's public test files, read in place; where they are absent the test says so in one line.

#![expect(clippy::disallowed_methods, reason = "tests read their data")]

use serde_json::Value;
use std::path::{Path, PathBuf};

/// All JSON files below `folder` of the vectors, in order; `None`, with a visible line, if there are none.
pub(crate) fn files(folder: &str) -> Option<Vec<PathBuf>> {
    let root = path(folder)?;
    let mut found = Vec::new();
    collect(&root, &mut found);
    found.sort();
    Some(found)
}

/// A file or folder of the vectors; `None`, with a visible line, if it is absent.
pub(crate) fn path(relative: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CLOISTER_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors/public"),
        PathBuf::from,
    );
    let path = root.join(relative);
    if path.exists() {
        return Some(path);
    }
    println!("not run: {} is absent", path.display());
    None
}

/// The named cases of a file.
pub(crate) fn cases(file: &Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(file).expect("readable");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let Value::Object(cases) = json else {
        panic!("{}: not an object", file.display());
    };
    cases.into_iter().collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
}
