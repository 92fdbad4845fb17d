//! Detects listeners on all addresses.
//!
//! A pod has an address of its own; a program that listens on the wildcard address (`0.0.0.0` or `::`) takes
//! its port from all pods and Services of the machine. As it works for that program, nobody would notice before
//! the second replica starts; so it is reported.
//!
//! *Assumed*: the processes belong to the same user; others do not show their open files. *Not done*: UDP;
//! processes that left their group.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
};

/// The state of a listening socket in `/proc/net/tcp`.
const TCP_LISTEN_STATE: &str = "0A";

/// The wildcard addresses on which processes of these groups listen, by group. Reads `/proc` and may take
/// milliseconds, so it must run on a blocking thread.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn wildcard_addresses(groups: &BTreeSet<i32>) -> io::Result<BTreeMap<i32, BTreeSet<SocketAddr>>> {
    let sockets = wildcard_sockets()?;
    let mut found: BTreeMap<i32, BTreeSet<SocketAddr>> = BTreeMap::new();
    if sockets.is_empty() {
        return Ok(found);
    }
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry.ok().filter(|entry| is_number(&entry.file_name())).map(|entry| entry.path()) else {
            continue;
        };
        // The process may end meanwhile.
        let Some(group) = process_group(&process).filter(|group| groups.contains(group)) else { continue };
        for address in open_sockets(&process).into_iter().filter_map(|inode| sockets.get(&inode).copied()) {
            found.entry(group).or_default().insert(address);
        }
    }
    Ok(found)
}

fn is_number(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

/// The sockets that listen on all addresses, by inode.
fn wildcard_sockets() -> io::Result<HashMap<u64, SocketAddr>> {
    let mut sockets = HashMap::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match fs::read_to_string(table) {
            Ok(text) => {
                sockets.extend(text.lines().filter_map(parse_listener).filter(|(_, at)| at.ip().is_unspecified()))
            }
            // The machine may be without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

/// Parses inode and address of a listening socket: `0: 0100007F:1F90 00000000:0000 0A … inode …`.
fn parse_listener(line: &str) -> Option<(u64, SocketAddr)> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    if state != TCP_LISTEN_STATE {
        return None;
    }
    let (ip, port) = local.split_once(':')?;
    let inode = fields.nth(5)?.parse().ok()?;
    Some((inode, SocketAddr::new(parse_address(ip)?, u16::from_str_radix(port, 16).ok()?)))
}

/// Words of four bytes, each in the byte order of the machine.
fn parse_address(text: &str) -> Option<IpAddr> {
    let word = |from: usize| Some(u32::from_str_radix(text.get(from..from + 8)?, 16).ok()?.to_ne_bytes());
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// The process group: the third field after the name, which may contain anything and ends with the last
/// parenthesis.
fn process_group(process: &Path) -> Option<i32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

/// The inodes of a process's open sockets: links of the form `socket:[123]`.
fn open_sockets(process: &Path) -> Vec<u64> {
    let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
