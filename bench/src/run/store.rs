//! The run's folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_event_loop::wall_clock::Date;

use super::RunError;
use crate::record::{Run, TestRecord};
use crate::run_files;

/// The folder of runs that name no folder.
const RUNS: &str = "bench/runs";
const CONFIGURATIONS: &str = "configurations";
const LOGS: &str = "logs";
/// Replaces the path of the run's folder in kept files.
const PLACE: &str = "$RUN";
/// Replaces the path of the OWASP CRS folder in kept files.
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

/// The current time in UTC, as RFC 3339 text with whole seconds.
pub fn now() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}Z", Date::of(elapsed.as_secs()).iso)
}

/// Example: `2026-11-21T03:55:33Z` on `adc` gives `2026-11-21T0355Z-adc`.
fn folder_name(started: &str, host: &str) -> String {
    let time: String = started.chars().take(16).filter(|letter| *letter != ':').collect();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let host: String = host.chars().filter(|letter| is_plain(*letter)).collect();
    format!("{time}Z-{host}")
}

impl Store {
    /// Creates the run's folder: `given`, which must be empty or absent, or by default a new folder in `bench/runs`
    /// named by date and host.
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

    /// The absolute path of the run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a product's configuration and returns its path. `scene` names the test, or a setting of it.
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

    /// The path of a product's configuration.
    pub fn configuration_of(&self, scene: &str, product: &str, file: &str) -> PathBuf {
        self.folder.join(CONFIGURATIONS).join(scene).join(product).join(file)
    }

    /// Creates a folder for the working files of a product.
    pub fn working(&self, scene: &str, product: &str) -> Result<PathBuf, RunError> {
        let folder = self.folder.join(WORKING).join(scene).join(product);
        fs::create_dir_all(&folder).map_err(RunError::io("make", &folder))?;
        Ok(folder)
    }

    /// Copies the log of a failed product. Returns the path of the copy, relative to the run's folder.
    pub fn keep_log(&self, scene: &str, product: &str, log: &Path) -> Result<String, RunError> {
        let folder = self.folder.join(LOGS).join(scene);
        fs::create_dir_all(&folder).map_err(RunError::io("make", &folder))?;
        fs::copy(log, folder.join(format!("{product}.log"))).map_err(RunError::io("keep", log))?;
        Ok(format!("{LOGS}/{scene}/{product}.log"))
    }

    /// Adds a test's record and saves the run.
    pub fn add(&mut self, record: TestRecord) -> Result<(), RunError> {
        let path = run_files::test_file(&self.folder, &record.name);
        run_files::write_test(&self.folder, &record).map_err(RunError::io("write", &path))?;
        self.run.tests.push(record);
        self.save()
    }

    /// Saves what the run knows beside the records of its tests.
    pub fn save(&mut self) -> Result<(), RunError> {
        self.run.elapsed_s = self.began.elapsed().as_secs_f64();
        let path = self.folder.join(run_files::FILE_NAME);
        run_files::write_head(&self.folder, &self.run).map_err(RunError::io("write", &path))
    }

    /// Removes the working files of the products. In kept files, replaces the paths of the run's folder and of the
    /// `crs` folder by placeholders, because both paths differ on other machines.
    pub fn tidy(&self, crs: Option<&Path>) -> Result<(), RunError> {
        let working = self.folder.join(WORKING);
        fs::remove_dir_all(&working).map_err(RunError::io("remove", &working))?;
        let mut places = vec![(self.folder.display().to_string(), PLACE)];
        places.extend(crs.map(|folder| (folder.display().to_string(), CRS_PLACE)));
        [CONFIGURATIONS, LOGS].iter().try_for_each(|kept| replace(&self.folder.join(kept), &places))
    }
}

/// Replaces each path of `places` by its placeholder, in all files below `folder`. Skips a folder that does not exist.
fn replace(folder: &Path, places: &[(String, &str)]) -> Result<(), RunError> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.map_err(RunError::io("read", folder))?.path();
        if path.is_dir() {
            replace(&path, places)?;
            continue;
        }
        // Binary files are not UTF-8; they are left unchanged.
        let text = fs::read_to_string(&path).unwrap_or_default();
        let shown = places.iter().fold(text.clone(), |text, (path, word)| text.replace(path, word));
        if shown != text {
            fs::write(&path, shown).map_err(RunError::io("write", &path))?;
        }
    }
    Ok(())
}

/// `folder`, or if it exists, the first free `folder-2`, `folder-3` and so on.
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
        let read = crate::report::read(&folder).expect("a run");
        assert_eq!(read.tests[0].name, "ramp");
        assert!(!folder.join("run.json.draft").exists());
        let error = Store::make(Some(&folder), testing::run()).expect_err("taken");
        assert!(error.to_string().contains("is not empty"), "{error}");
        fs::remove_dir_all(&folder).expect("removing it");
    }
}
