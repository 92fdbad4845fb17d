//! Rotation: renames full files, and removes old ones.
//!
//! `spans.json` becomes `spans-2006-01-02T15-04-05.000.json`, by the time at which it was renamed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use jiff::{Timestamp, Zoned, civil::DateTime, tz::TimeZone};
use kubewake_config::model::RotationConfig;

const BACKUP_TIME_FORMAT: &str = "%Y-%m-%dT%H-%M-%S%.3f";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Renames the file, and removes backups beyond the limits.
pub(super) fn rotate(path: &Path, rotation: &RotationConfig, now: SystemTime) -> io::Result<()> {
    fs::rename(path, free_name(path, rotation, now))?;
    if let Err(error) = prune(path, rotation, now) {
        tracing::warn!(path = %path.display(), %error, "failed to remove old files");
    }
    Ok(())
}

/// An unused name: two rotations may fall into one millisecond.
fn free_name(path: &Path, rotation: &RotationConfig, now: SystemTime) -> PathBuf {
    let mut time = now;
    loop {
        let name = backup_name(path, rotation, time);
        if !name.exists() {
            return name;
        }
        time += Duration::from_millis(1);
    }
}

pub(super) fn backup_name(path: &Path, rotation: &RotationConfig, time: SystemTime) -> PathBuf {
    let (before, after) = backup_name_affixes(path);
    path.with_file_name(format!("{before}{}{after}", zoned(rotation, time).strftime(BACKUP_TIME_FORMAT)))
}

/// The text before and after the time in a backup's name.
fn backup_name_affixes(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| format!(".{}", text(Some(extension))));
    (format!("{}-", text(path.file_stem())), extension.unwrap_or_default())
}

fn zone(rotation: &RotationConfig) -> TimeZone {
    // UTC on a machine without a known time zone.
    if rotation.localtime { TimeZone::try_system().unwrap_or(TimeZone::UTC) } else { TimeZone::UTC }
}

fn zoned(rotation: &RotationConfig, time: SystemTime) -> Zoned {
    Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone(rotation))
}

fn prune(path: &Path, rotation: &RotationConfig, now: SystemTime) -> io::Result<()> {
    let mut backups = backups(path, rotation)?;
    backups.sort_unstable_by(|a, b| b.cmp(a));
    let kept = if rotation.max_backups == 0 { usize::MAX } else { rotation.max_backups as usize };
    let oldest = (rotation.max_days > 0).then(|| now.checked_sub(DAY * rotation.max_days)).flatten();
    for (i, (time, file)) in backups.into_iter().enumerate() {
        if i >= kept || oldest.is_some_and(|oldest| time < oldest) {
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

/// The backups, each with its time. Files whose names only look similar are ignored.
fn backups(path: &Path, rotation: &RotationConfig) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let (before, after) = backup_name_affixes(path);
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let time = name.to_str().and_then(|name| name.strip_prefix(&*before)?.strip_suffix(&*after));
        if let Some(time) = time.and_then(|time| parse(time, rotation)) {
            found.push((time, entry.path()));
        }
    }
    Ok(found)
}

fn parse(text: &str, rotation: &RotationConfig) -> Option<SystemTime> {
    let time = DateTime::strptime("%Y-%m-%dT%H-%M-%S%.f", text).ok()?;
    Some(time.to_zoned(zone(rotation)).ok()?.timestamp().into())
}
