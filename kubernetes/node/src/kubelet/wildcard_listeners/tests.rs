use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use super::*;

/// A process that holds a socket.
struct Holder(Child);

impl Holder {
    /// Its standard input is the socket.
    fn start(socket: TcpListener) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "echo ready; exec sleep 1000"])
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)))
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        Self(child)
    }

    fn group(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn who_listens_on_all_addresses_is_found() {
    let one = TcpListener::bind("0.0.0.0:0").unwrap();
    let other = TcpListener::bind("[::]:0").unwrap();
    let addresses = [one.local_addr().unwrap(), other.local_addr().unwrap()];
    let holders = [Holder::start(one), Holder::start(other)];
    let groups = holders.each_ref().map(Holder::group);
    let found = wildcard_addresses(&groups.into()).unwrap();
    let expected = groups.into_iter().zip(addresses.map(|address| BTreeSet::from([address])));
    assert_eq!(found, expected.collect());
    // Groups that were not asked for are not in the result.
    assert_eq!(wildcard_addresses(&BTreeSet::new()).unwrap(), BTreeMap::new());
}

#[test]
fn who_listens_on_one_address_is_as_it_should_be() {
    let holder = Holder::start(TcpListener::bind("127.0.0.1:0").unwrap());
    assert_eq!(wildcard_addresses(&[holder.group()].into()).unwrap(), BTreeMap::new());
}

#[test]
fn tables_of_the_kernel_are_read() {
    let line = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000 100 0 0 10 0";
    assert_eq!(parse_listener(line), Some((4711, "127.0.0.1:8080".parse().unwrap())));
    assert_eq!(parse_listener(&line.replace(" 0A ", " 01 ")), None);
    let line = "   0: 00000000000000000000000001000000:10DD 00000000000000000000000000000000:0000 0A 00000000:00000000 \
                00:00000000 00000000  1000        0 4712 1 0000 100 0 0 10 0";
    assert_eq!(parse_listener(line), Some((4712, "[::1]:4317".parse().unwrap())));
    for wrong in ["", "  sl  local_address rem_address   st", "0: x 0A", "0: 0100007F:1F90 0:0 0A a b c d e f"] {
        assert_eq!(parse_listener(wrong), None, "{wrong}");
    }
}
