//! Parses the parts of callgrind's output that tell how often each instruction was executed.

use std::collections::HashMap;

use anyhow::Context;

/// Executions by address, for the instructions of the object whose path ends in `/OBJECT`.
///
/// The file has the format of `--dump-instr=yes`: a cost line is `ADDRESS LINE COUNT`, with an absolute address
/// or one relative to the previous line. The line after `calls=` has the costs of the callee, which occur
/// there, too.
pub(super) fn parse(text: &str, object: &str) -> anyhow::Result<HashMap<u64, u64>> {
    let wanted = format!("/{object}");
    let mut objects: HashMap<&str, bool> = HashMap::new();
    let mut counts: HashMap<u64, u64> = HashMap::new();
    let mut address = 0;
    let mut is_ours = false;
    let mut is_call = false;
    for line in text.lines() {
        if let Some((key, value)) = line.split_once('=') {
            let (id, name) = value.split_once(' ').unwrap_or((value, ""));
            if matches!(key, "ob" | "cob") && !name.is_empty() {
                objects.insert(id, name.ends_with(&wanted));
            }
            match key {
                "ob" => is_ours = objects.get(id).copied().unwrap_or(false),
                "calls" => is_call = true,
                _ => {}
            }
        } else if let Some((at, count)) = parse_cost_line(line) {
            address =
                shift_address(address, at).with_context(|| format!("failed to read the address in line {line:?}"))?;
            if is_ours && !is_call {
                *counts.entry(address).or_default() += count;
            }
            is_call = false;
        }
    }
    Ok(counts)
}

/// Address and count of a cost line. None for headers.
fn parse_cost_line(line: &str) -> Option<(&str, u64)> {
    let mut words = line.split(' ');
    let at = words.next().filter(|word| word.starts_with(['+', '-', '*']) || word.starts_with("0x"))?;
    words.next()?;
    Some((at, words.next()?.parse().ok()?))
}

fn shift_address(address: u64, by: &str) -> Option<u64> {
    if by == "*" {
        Some(address)
    } else if let Some(hex) = by.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(back) = by.strip_prefix('-') {
        address.checked_sub(back.parse().ok()?)
    } else {
        address.checked_add(by.strip_prefix('+')?.parse().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_counted_once_and_only_of_the_program() {
        let text = "positions: instr line\nevents: Ir\n\nob=(1) /usr/lib/libc.so.6\nfn=(1) malloc\n0x10 5 7\n\nob=(2) /target/release/kubewake\nfn=(2) main\n0x20 1 3\n+4 +1 3\n\
                    cob=(1)\ncfn=(1)\ncalls=3 0x10 5\n* * 21\n-2 * 1\nfn=(3) other\n0x20 9 2\nob=(1)\nfn=(1)\n0x20 5 100\nob=(2)\nfn=(2)\n+2 1 1\ntotals: 9\n";
        let counts = parse(text, "kubewake").unwrap();
        assert_eq!(counts, HashMap::from([(0x20, 5), (0x24, 3), (0x22, 2)]));
    }
}
