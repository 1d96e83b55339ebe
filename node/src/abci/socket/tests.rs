use super::*;
use std::os::unix::net::UnixListener;

fn unix(path: PathBuf) -> AbciAddress {
    AbciAddress::Unix { path, group: None }
}

#[test]
fn short_homes_hold_their_socket_and_long_ones_get_a_short_folder() {
    let short =
        AbciAddress::unix_for_home(Path::new("/srv/node"), None).expect("no disk is touched");
    assert_eq!(short.to_string(), "unix:///srv/node/run/abci.sock");
    let long = PathBuf::from(format!("/{}", "deep/".repeat(40)));
    let AbciAddress::Unix { path, .. } =
        AbciAddress::unix_for_home(&long, None).expect("no disk is touched")
    else {
        panic!("a unix address was asked for")
    };
    assert!(path.as_os_str().len() <= PATH_BYTES_MAX);
    assert_eq!(
        unix(path),
        AbciAddress::unix_for_home(&long, None).expect("the same again")
    );
}

#[test]
fn removes_a_socket_that_nobody_serves_and_keeps_one_in_use() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let path = home.path().join("run/abci.sock");
    let address = unix(path.clone());
    address.prepare().expect("a fresh folder");
    assert_eq!(
        fs::metadata(home.path().join("run")).expect("made").mode() & 0o777,
        0o700
    );

    let listener = UnixListener::bind(&path).expect("a fresh path");
    assert!(matches!(address.prepare(), Err(SocketError::InUse { .. })));
    drop(listener);
    assert!(path.exists(), "a closed listener leaves its socket");
    address.prepare().expect("nobody serves it");
    assert!(!path.exists());
}

#[test]
fn never_removes_a_file_that_is_not_a_socket() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let path = home.path().join("run/abci.sock");
    fs::create_dir(home.path().join("run")).expect("a fresh folder");
    fs::write(&path, "precious").expect("a fresh folder");
    assert!(matches!(
        unix(path.clone()).prepare(),
        Err(SocketError::NotASocket { .. })
    ));
    assert!(path.exists());
}

#[test]
fn refuses_a_folder_that_others_may_write_to() {
    let home = tempfile::tempdir().expect("a temporary folder");
    let folder = home.path().join("run");
    fs::create_dir(&folder).expect("a fresh folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("our own folder");
    assert!(matches!(
        unix(folder.join("abci.sock")).prepare(),
        Err(SocketError::Folder { mode: 0o777, .. })
    ));
}

#[test]
fn groups_go_by_name_or_number() {
    assert_eq!(group_number("42").ok(), Some(42));
    assert_eq!(group_number("root").ok(), Some(0));
    assert!(matches!(
        group_number("no such group"),
        Err(SocketError::Group { .. })
    ));
}
