//! The numbers of operators.

use crate::plan::facts::{OperatorNeeds, has_bit};
use crate::plan::rule_set::RuleSet;
use crate::plan::view;

/// Renumbers the operators: those of the rules that remain with default settings come first, so that the rows of most views
/// are short. Returns the needs in the new order.
pub(super) fn usual_first(rules: &mut RuleSet, needs: Vec<OperatorNeeds>) -> Vec<OperatorNeeds> {
    let usual = view::usual(rules);
    let mut new_numbers = vec![0; needs.len()];
    let (first, rest): (Vec<_>, Vec<_>) =
        (0u16..).zip(needs).partition(|(number, _)| has_bit(&usual, *number));
    let mut ordered = Vec::with_capacity(new_numbers.len());
    for (number, needs) in first.into_iter().chain(rest) {
        new_numbers[usize::from(number)] = ordered.len() as u16;
        ordered.push(needs);
    }
    for link in rules.rules.iter_mut().flat_map(|rule| &mut rule.links) {
        link.operator.number = link.operator.number.map(|it| new_numbers[usize::from(it)]);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::plan::{Files, RuleSet, Settings, View};

    struct OneFile(String);

    impl Files for OneFile {
        fn find(&mut self, _: &str, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn read(&mut self, _: &str) -> Result<Vec<u8>, String> {
            Ok(self.0.clone().into_bytes())
        }
    }

    #[test]
    fn rows_of_usual_views_are_short() {
        let mut text = String::from(
            "SecRule &TX:level \"@eq 0\" \"id:1,phase:1,pass,nolog,setvar:tx.level=1\"\n\
             SecRule TX:level \"@lt 2\" \"id:2,phase:2,pass,nolog,skipAfter:END\"\n",
        );
        for id in 10..400 {
            text += &format!("SecRule ARGS \"@rx a{id}\" \"id:{id},phase:2,pass\"\n");
        }
        text += "SecMarker END\nSecRule ARGS \"@rx usual\" \"id:1000,phase:2,pass\"\n";
        let rules = RuleSet::compile(&["rules".into()], &mut OneFile(text)).expect("rules");
        let rules = Arc::new(rules);
        let words = |level: &str| {
            let variables = vec![("level".to_owned(), level.to_owned())];
            let settings = Settings { variables };
            View::new(Arc::clone(&rules), &settings).expect("a view").row_words()
        };
        assert_eq!(rules.rule(1000).and_then(|rule| rule.links[0].operator.number), Some(0));
        assert_eq!((words("1"), words("2")), (4, 8));
    }
}
