//! The invariants of ARCHITECTURE.md that a text search can check, and a table of long files to look at.

use cloister_e2e::{report, root};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Crates that must stay pure.
const PURE: [&str; 3] = ["app", "genesis", "modules"];

/// Dependencies that pure crates must not have, and names their sources must not hold.
const CRATES_BARRED: [&str; 9] = [
    "tokio",
    "tower-abci",
    "rocksdb",
    "tendermint",
    "reqwest",
    "hyper",
    "jsonrpsee",
    "rustix",
    "tracing-subscriber",
];
const NAMES_BARRED: [&str; 10] = [
    "tokio::",
    "tower_abci",
    "rocksdb::",
    "std::time",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "SystemTime",
    "Instant::now",
];

/// Lines above which a file is listed.
const FILE_LINES_MAX: usize = 600;

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return found;
    };
    for entry in entries {
        let path = entry.expect("a folder of the workspace is readable").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if path.is_dir() {
            if !path.is_symlink() && !matches!(name, "target" | "node_modules" | ".git" | ".venv") {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a source is compiled for tests alone, by its folder or by how its module is declared.
fn is_test(path: &Path) -> bool {
    let is_test_folder = path.components().any(|part| {
        matches!(
            part.as_os_str().to_str(),
            Some("tests" | "benches" | "examples" | "tests.rs")
        )
    });
    let stem = path.file_stem().and_then(|name| name.to_str());
    let declared = stem.is_some_and(|stem| {
        let declaration = format!("#[cfg(test)]\nmod {stem};");
        ["lib.rs", "mod.rs"].into_iter().any(|parent| {
            fs::read_to_string(path.with_file_name(parent))
                .is_ok_and(|text| text.contains(&declaration))
        })
    });
    is_test_folder || declared
}

/// Code of a line, without its comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[test]
fn pure_crates_have_no_dependency_on_the_shell() {
    let mut checked = 0;
    for folder in PURE {
        for manifest in files(&root().join(folder), "toml") {
            if manifest.file_name().is_none_or(|name| name != "Cargo.toml") {
                continue;
            }
            let table: toml::Table = read(&manifest)
                .parse()
                .expect("a manifest that cargo reads");
            let dependencies = table.get("dependencies").and_then(|value| value.as_table());
            for name in dependencies.into_iter().flat_map(toml::Table::keys) {
                assert!(
                    !CRATES_BARRED.contains(&name.as_str()),
                    "{} depends on {name}",
                    manifest.display()
                );
            }
            checked += 1;
        }
    }
    assert!(
        checked >= 3,
        "only {checked} manifests found: app, genesis and modules moved?"
    );
}

#[test]
fn pure_crates_name_no_clock_disk_socket_or_task() {
    let mut faults = Vec::new();
    let mut checked = 0;
    for folder in PURE {
        for path in files(&root().join(folder), "rs") {
            if is_test(&path) {
                continue;
            }
            checked += 1;
            for (number, line) in read(&path).lines().enumerate() {
                for name in NAMES_BARRED {
                    if code_of(line).contains(name) {
                        faults.push(format!("{}:{}: {name}", path.display(), number + 1));
                    }
                }
            }
        }
    }
    assert!(
        checked >= 10,
        "only {checked} sources found: app, genesis and modules moved?"
    );
    assert!(
        faults.is_empty(),
        "a pure crate names what it must not:\n{}",
        faults.join("\n")
    );
}

#[test]
fn revm_is_named_in_its_own_files_only() {
    let mut faults = Vec::new();
    for folder in ["genesis", "modules", "node", "e2e/src"] {
        for path in files(&root().join(folder), "rs") {
            for (number, line) in read(&path).lines().enumerate() {
                if code_of(line).contains("revm::") && !is_test(&path) {
                    faults.push(format!("{}:{}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(
        faults.is_empty(),
        "revm changes its major version often; name it inside app only:\n{}",
        faults.join("\n")
    );
}

/// With c-kzg the first point evaluation (0x0a) after a start computes tables for seconds, inside a block's execution: one transaction of
/// 100,000 gas would hold up every validator beyond timeout_propose. blst verifies the same without tables.
#[test]
fn point_evaluation_needs_no_tables() {
    let manifest: toml::Table = read(&root().join("Cargo.toml"))
        .parse()
        .expect("a manifest that cargo reads");
    let features = manifest["workspace"]["dependencies"]["revm"]["features"]
        .as_array()
        .expect("revm has a list of features");
    let has = |name: &str| {
        features
            .iter()
            .any(|feature| feature.as_str() == Some(name))
    };
    assert!(
        has("blst") && !has("c-kzg"),
        "revm's features: {features:?}"
    );
}

#[test]
fn unsafe_code_is_denied_for_every_crate() {
    let manifest: toml::Table = read(&root().join("Cargo.toml"))
        .parse()
        .expect("a manifest that cargo reads");
    assert_eq!(
        manifest["workspace"]["lints"]["rust"]["unsafe_code"].as_str(),
        Some("deny")
    );
    for member in manifest["workspace"]["members"]
        .as_array()
        .expect("members are a list")
    {
        let member = member.as_str().expect("members are paths");
        let crate_manifest: toml::Table = read(&root().join(member).join("Cargo.toml"))
            .parse()
            .expect("a manifest that cargo reads");
        let inherits = crate_manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"));
        assert_eq!(
            inherits.and_then(toml::Value::as_bool),
            Some(true),
            "{member} does not take the workspace's lints"
        );
    }
}

#[test]
fn every_path_named_in_the_architecture_exists() {
    let page = root().join("ARCHITECTURE.md");
    let text = read(&page);
    let mut missing = BTreeSet::new();
    let mut named = 0;
    // Code spans and links that look like paths of this workspace.
    for piece in text.split(|c: char| c.is_whitespace() || "`()[]<>,;\"'|".contains(c)) {
        let path = piece
            .trim_end_matches(['.', ':'])
            .split('#')
            .next()
            .unwrap_or_default();
        let path = path.split("::").next().unwrap_or_default();
        let first = path.split('/').next().unwrap_or_default();
        let is_ours = path.contains('/')
            && matches!(
                first,
                "app"
                    | "node"
                    | "genesis"
                    | "modules"
                    | "tools"
                    | "e2e"
                    | "docs"
                    | "scripts"
                    | "snapshots"
                    | "keyfile"
                    | ".ci"
            )
            && !path.contains(['*', '…', '{', '$']);
        if is_ours {
            named += 1;
            if !root().join(path).exists() {
                missing.insert(path.to_owned());
            }
        }
    }
    assert!(
        named >= 10,
        "ARCHITECTURE.md names {named} paths: its road of one transaction should name more"
    );
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md names what does not exist: {missing:?}"
    );
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut broken = Vec::new();
    for page in files(&root(), "md") {
        let text = read(&page);
        for piece in text.split("](").skip(1) {
            let target = piece
                .split(')')
                .next()
                .unwrap_or_default()
                .split('#')
                .next()
                .unwrap_or_default();
            if target.is_empty() || target.contains(':') {
                continue;
            }
            if !page
                .parent()
                .expect("a file has a folder")
                .join(target)
                .exists()
            {
                broken.push(format!("{} -> {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// A table to look at, not a limit: a long file is a question.
#[test]
fn long_files_are_listed() {
    let mut long = Vec::new();
    for folder in ["app", "genesis", "modules", "node", "tools", "e2e"] {
        for path in files(&root().join(folder), "rs") {
            let lines = read(&path).lines().count();
            if lines > FILE_LINES_MAX {
                long.push((lines, path));
            }
        }
    }
    long.sort();
    for (lines, path) in long.iter().rev() {
        let path = path.strip_prefix(root()).unwrap_or(path);
        report(&format!("{lines} lines: {}", path.display()));
    }
}
