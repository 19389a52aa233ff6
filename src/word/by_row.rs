//! PURE: operations that are compiled for each row of `shapes!`: the shortest ones, where constants save a tenth of the
//! instructions. Each has a list of functions of its own, so that a program links only the operations that it calls.

/// A function for each row. There are as many as four bits can say, so a row needs no comparison with their number.
pub(crate) struct ByRow<F>([F; 16]);

impl<F: Copy> ByRow<F> {
    /// The list of these functions, each in the place of its row. (No table has another row.)
    pub(crate) const fn new<const N: usize>(rows: [usize; N], functions: [F; N]) -> Self {
        let mut all = [functions[0]; 16];
        let mut nth = 0;
        while nth < N {
            all[rows[nth]] = functions[nth];
            nth += 1;
        }
        Self(all)
    }

    #[inline(always)]
    pub(crate) fn of(&self, row: usize) -> F {
        self.0[row & 15]
    }
}

/// The list of this function for each row of `shapes!` or of `shapes_with_payload!`. Its first two arguments are the table and
/// the table's layout with the constants of that row.
///
/// Lists are statics. So where a program inlines a method that uses one, it refers to the functions and does not compile them
/// again.
macro_rules! by_row {
    ($shapes:ident, $function:tt) => {
        $crate::word::layout::$shapes!(by_row! { @list $function; })
    };
    (@list $function:tt; $($Encoding:ident $slots:literal $bits:literal,)*) => {
        $crate::word::by_row::ByRow::new(
            [$(by_row!(@number $Encoding $slots)),*],
            [$(by_row!(@function { by_row!(@number $Encoding $slots) } $function)),*],
        )
    };
    (@number $Encoding:ident $slots:literal) => {
        $crate::word::layout::Shape::row($crate::word::layout::Encoding::$Encoding, $slots)
    };
    (@function $row:block { |$table:ident, $layout:ident $(, $argument:ident)*| $body:expr }) => {
        |$table $(, $argument)*| {
            let $layout = $crate::word::layout::ConstLayout::<_, $row>(&$table.layout);
            $body
        }
    };
}

pub(crate) use by_row;
