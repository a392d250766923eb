//! The run's folder.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_event_loop::wall_clock::Date;

use super::RunError;
use crate::record::{FILE_NAME, Run, TestRecord};

/// Where runs are kept unless a folder is given.
const RUNS: &str = "bench/runs";
const CONFIGURATIONS: &str = "configurations";
const LOGS: &str = "logs";
/// The placeholder of the run's folder in kept files.
const PLACE: &str = "$RUN";
/// Stands for the folder of OWASP CRS in kept files.
const CRS_PLACE: &str = "$CRS";
/// Working files of the products; removed at the end.
const WORKING: &str = "working";

/// A run that is being written.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    began: Instant,
    /// The record so far.
    pub run: Run,
}

/// The time now, RFC 3339 in UTC, in seconds.
pub fn now() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}Z", Date::of(elapsed.as_secs()).iso)
}

/// `2026-11-21T03:55:33Z` on `adc`: `2026-11-21T0355Z-adc`.
fn folder_name(started: &str, host: &str) -> String {
    let time: String = started.chars().take(16).filter(|letter| *letter != ':').collect();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let host: String = host.chars().filter(|letter| is_plain(*letter)).collect();
    format!("{time}Z-{host}")
}

impl Store {
    /// Makes the folder: the given one, which must be empty or absent, or a new one by date and host.
    pub fn make(given: Option<&Path>, run: Run) -> Result<Self, RunError> {
        let folder = match given {
            Some(folder) => folder.to_owned(),
            None => unused(&Path::new(RUNS).join(folder_name(&run.started, &run.machine.host))),
        };
        let is_taken = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken {
            return Err(RunError::Input(format!(
                "{} is not empty: name an empty or a new folder",
                folder.display()
            )));
        }
        let working = folder.join(WORKING);
        fs::create_dir_all(&working).map_err(RunError::io("make", &working))?;
        // Products run elsewhere, so paths must not depend on the current directory.
        let folder = folder.canonicalize().map_err(RunError::io("find", &folder))?;
        Ok(Self { folder, began: Instant::now(), run })
    }

    /// The run's folder; absolute.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a product's configuration and says where; `scene` is the test, or a part of it.
    pub fn configuration(
        &self,
        scene: &str,
        product: &str,
        file: &str,
        text: &str,
    ) -> Result<PathBuf, RunError> {
        let path = self.configuration_of(scene, product, file);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(RunError::io("make", folder))?;
        fs::write(&path, text).map_err(RunError::io("write", &path))?;
        Ok(path)
    }

    /// Where a product's configuration is that was written.
    pub fn configuration_of(&self, scene: &str, product: &str, file: &str) -> PathBuf {
        self.folder.join(CONFIGURATIONS).join(scene).join(product).join(file)
    }

    /// A folder for the working files of a product.
    pub fn working(&self, scene: &str, product: &str) -> Result<PathBuf, RunError> {
        let folder = self.folder.join(WORKING).join(scene).join(product);
        fs::create_dir_all(&folder).map_err(RunError::io("make", &folder))?;
        Ok(folder)
    }

    /// Keeps the log of a product that failed; where, below the run's folder.
    pub fn keep_log(&self, scene: &str, product: &str, log: &Path) -> Result<String, RunError> {
        let folder = self.folder.join(LOGS).join(scene);
        fs::create_dir_all(&folder).map_err(RunError::io("make", &folder))?;
        fs::copy(log, folder.join(format!("{product}.log"))).map_err(RunError::io("keep", log))?;
        Ok(format!("{LOGS}/{scene}/{product}.log"))
    }

    /// Adds a test and writes everything.
    pub fn add(&mut self, record: TestRecord) -> Result<(), RunError> {
        self.run.tests.push(record);
        self.save()
    }

    /// Writes everything; a reader sees the old file or the new one, never a part.
    pub fn save(&mut self) -> Result<(), RunError> {
        self.run.elapsed_s = self.began.elapsed().as_secs_f64();
        let path = self.folder.join(FILE_NAME);
        let draft = self.folder.join(format!("{FILE_NAME}.draft"));
        let text = serde_json::to_vec_pretty(&self.run)
            .map_err(|error| RunError::io("write", &draft)(error.into()))?;
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(&text)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(RunError::io("write", &path))
    }

    /// Removes the working files of the products, and replaces the paths of the run's folder and of `crs` in kept files: readers
    /// have them elsewhere.
    pub fn tidy(&self, crs: Option<&Path>) -> Result<(), RunError> {
        let working = self.folder.join(WORKING);
        fs::remove_dir_all(&working).map_err(RunError::io("remove", &working))?;
        let mut places = vec![(self.folder.display().to_string(), PLACE)];
        places.extend(crs.map(|folder| (folder.display().to_string(), CRS_PLACE)));
        [CONFIGURATIONS, LOGS].iter().try_for_each(|kept| replace(&self.folder.join(kept), &places))
    }
}

/// Writes a word for each of these paths in all files of a folder, if the folder exists.
fn replace(folder: &Path, places: &[(String, &str)]) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        if path.is_dir() {
            replace(&path, places)?;
            continue;
        }
        // Binary files have no paths to replace.
        let text = fs::read_to_string(&path).unwrap_or_default();
        let shown = places.iter().fold(text.clone(), |text, (path, word)| text.replace(path, word));
        if shown != text {
            fs::write(&path, shown).map_err(RunError::io("write", &path))?;
        }
    }
    Ok(())
}

/// That folder, or the same with a number.
fn unused(folder: &Path) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", folder.display())));
    let mut candidates = std::iter::once(folder.to_owned()).chain(numbered);
    candidates.find(|candidate| !candidate.exists()).unwrap_or_else(|| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing;

    #[test]
    fn names_of_folders() {
        let check = |started, host, expected| assert_eq!(folder_name(started, host), expected);
        check("2026-11-21T03:55:33Z", "adc", "2026-11-21T0355Z-adc");
        check("2026-11-21T03:55:33Z", "../a c", "2026-11-21T0355Z-..ac");
        assert_eq!(now().len(), "2026-11-21T03:55:33Z".len());
    }

    #[test]
    fn what_is_kept() {
        let folder = testing::folder("store");
        let mut store = Store::make(Some(&folder), testing::run()).expect("a folder");
        let run = store.folder().display();
        let text = format!("pid {run}/working/pid;\nInclude /some/crs4/rules/a.conf\n");
        let path = store.configuration("ramp", "nginx", "nginx.conf", &text).expect("kept");
        assert!(path.ends_with("configurations/ramp/nginx/nginx.conf"));
        let working = store.working("ramp", "nginx").expect("a folder");
        fs::write(working.join("output.log"), "why\n").expect("a log");
        let log = store.keep_log("ramp", "nginx", &working.join("output.log")).expect("kept");
        store.add(testing::record("ramp")).expect("written");
        store.tidy(Some(Path::new("/some/crs4"))).expect("removed");
        assert!(!working.exists() && folder.join(log).exists());
        let kept = fs::read_to_string(path).expect("kept");
        assert_eq!(kept, "pid $RUN/working/pid;\nInclude $CRS/rules/a.conf\n");
        let text = fs::read(folder.join(FILE_NAME)).expect("run.json");
        let read: Run = serde_json::from_slice(&text).expect("a run");
        assert_eq!(read.tests[0].name, "ramp");
        assert!(!folder.join("run.json.draft").exists());
        let error = Store::make(Some(&folder), testing::run()).expect_err("taken");
        assert!(error.to_string().contains("is not empty"), "{error}");
        fs::remove_dir_all(&folder).expect("removing it");
    }
}
