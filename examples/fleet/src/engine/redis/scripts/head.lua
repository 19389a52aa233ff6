-- Where the log ends.
--
-- ARGV: 1 and 2 what the caller knows.
return another(ARGV[1], ARGV[2]) or where()
