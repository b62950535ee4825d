package topology

import "testing"

// TestJobOf: a job is the same whoever names it, and other texts name none.
func TestJobOf(t *testing.T) {
	for text, want := range map[string]JobID{
		"24": "24", "24_7": "24_7", "24_[1-3,7%2]": "24_[1-3,7%2]", "24+1": "24+1",
		"SLURM_JOB10": "10", "SLURM_JOB_10": "10", "SLURM_JOB10:0:client-1": "10",
		"SLURM_JOB_gpu184_74186:0:gp": "74186",
		"SLURM_JOB_cn-1_5_42:0:cn-1":  "42", "SLURM_JOB_ID": "", "SLURM_JOB_": "", "987:1000:cn1": "987",
		"1234.pbs01": "1234", "1234[7].pbs01": "1234[7]", "1234[].pbs01": "1234[]", "1234.sdb": "1234",
		"1234.pbs01.example.org": "1234", "12[3]": "12[3]", `"1234.pbs01"`: "1234",
		"f2PTYP4HzE5": "f2PTYP4HzE5", "ƒ2PTYP4HzE5": "f2PTYP4HzE5", "f2PTYP4HzE6": "f2PTYP4HzE6",
		"10303648732379178": "f2PTYP4HzE5", "10303648732379178.1000": "", "999999999999": "999999999999",
		"f2PTYP4H0E5": "", "ffmpeg4": "", "fluent_mpi": "", "fOAM": "", "firefox": "", "fio": "", "f": "",
		"7z.1000": "", "12345.dd.1000": "", "dd.1000": "", "1234.1000": "", "2to3.0": "",
		"kworker/1:2.0": "", "kworker/86:1.0": "", "ldlm_bl_01": "",
		"12[]": "12[]", "12.server-1": "12",
		"bash:0:host": "", "": "", "genius_uge_70": "", "10.0.0.1": "", "123abc": "", "fe01.1234.0": "",
	} {
		if got := JobOf(text); got != want {
			t.Errorf("%q is job %q, want %q", text, got, want)
		}
	}
}

func FuzzJobOf(f *testing.F) {
	f.Add("1234[7].pbs01")
	f.Add("f2PTYP4HzE5")
	f.Fuzz(func(t *testing.T, text string) {
		if job := JobOf(text); job != "" && JobOf(string(job)) != job {
			t.Errorf("%q is job %q, and that is job %q", text, job, JobOf(string(job)))
		}
	})
}
